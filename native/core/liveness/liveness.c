#include "core/watchdog/watch_state.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define ABORT_PATIENCE_NS UINT64_C(1000000000)

enum { TEXT_BYTES = 512, NAME_BYTES = 160 };

enum { ABORTED = 128 + SIGABRT };

/* Ends the process as a supervisor would, by SIGABRT: what the program has for it (faulthandler, a crash
 * reporter) gets `patience_ns`, and a core is made where that is allowed. One that goes on all the same,
 * as its handler waits for the GIL or returns, is ended by the signal's default action. Does not return.
 * The watchdog's thread, which blocks all signals. */
static _Noreturn void end_hung_process(uint64_t patience_ns)
{
    lc_bell never = 0;
    sigset_t aborts;
    (void)kill(getpid(), SIGABRT); /* a thread of the program's takes it */
    lc_bell_wait(&never, 0, lc_now_ns() + patience_ns);
    (void)signal(SIGABRT, SIG_DFL);
    sigemptyset(&aborts);
    sigaddset(&aborts, SIGABRT);
    (void)pthread_sigmask(SIG_UNBLOCK, &aborts, NULL);
    (void)raise(SIGABRT);
    _exit(ABORTED);
}

/* The loop that has been in one turn for longest. */
typedef struct {
    uint64_t held_ns; /* 0: each waits */
    uint64_t index;
    bool some_in_turn;
} longest_turn;

static bool is_loop(const lc_lane *lane)
{
    return strncmp(lane->loop_kind, "thread", sizeof lane->loop_kind) != 0;
}

static lc_progress_facts facts_of(const lc_watchdog *w, const lc_lane *lane)
{
    lc_progress_facts facts = {.generation = LC_LOAD(lane->generation), .turn = LC_ACQUIRE(lane->turn_epoch)};
    const uint64_t epoch = LC_ACQUIRE(lane->epoch);
    if ((epoch & 1u) && LC_ACQUIRE(lane->allowance_epoch) == epoch) {
        facts.grant_epoch = epoch;
        facts.grant_ns = lc_ticks_to_ns(LC_LOAD(lane->allowance), lc_stall_rate(w));
    }
    return facts;
}

static longest_turn find_longest(lc_watchdog *w, uint64_t now_ns)
{
    longest_turn found = {0};
    const uint64_t used = LC_ACQUIRE(w->flight->header->sections[LC_SECTION_LANES].used);
    for (uint64_t i = 0; i < used && i < LC_LANE_COUNT; i++) {
        const lc_lane *lane = lc_flight_lane(w->flight, i);
        if (LC_ACQUIRE(lane->state) != LC_LANE_ACTIVE || !is_loop(lane)) {
            continue;
        }
        const lc_progress_facts facts = facts_of(w, lane);
        const uint64_t held = lc_progress_note(&w->watches[i].progress, &facts, now_ns);
        found.some_in_turn |= facts.turn & 1u;
        if (held > found.held_ns) {
            found.held_ns = held;
            found.index = i;
        }
    }
    return found;
}

/* Control characters would begin another line of the protocol. */
static void copy_name(char *out, size_t room, const char *text, size_t bytes)
{
    size_t i = 0;
    for (; i < bytes && i + 1 < room && text[i] != '\0'; i++) {
        out[i] = (unsigned char)text[i] < ' ' ? '?' : text[i];
    }
    while (i > 0 && i < bytes && ((unsigned char)text[i] & 0xc0u) == 0x80u) {
        i--; /* cut on a character's edge */
    }
    out[i] = '\0';
}

/* "MainThread (asyncio) has not waited for events for 17.2 s, in handler" */
static int describe(const lc_watchdog *w, const longest_turn *turn, char *out, size_t room)
{
    char thread[NAME_BYTES], kind[NAME_BYTES], callback[NAME_BYTES] = "";
    const lc_lane *lane = lc_flight_lane(w->flight, turn->index);
    const lc_slot_writer *writer = w->watches[turn->index].writer;
    copy_name(thread, sizeof thread, lane->thread_name, sizeof lane->thread_name);
    copy_name(kind, sizeof kind, lane->loop_kind, sizeof lane->loop_kind);
    if (writer != NULL && writer->slot->callback.offset != LC_NO_REF) {
        const lc_ref name = writer->slot->callback;
        copy_name(callback, sizeof callback, (const char *)writer->slot + name.offset, name.bytes);
    }
    const unsigned long long tenths = turn->held_ns / 100000000u;
    return snprintf(out, room, "%s (%s) has not waited for events for %llu.%llu s%s%s", thread, kind,
                    tenths / 10u, tenths % 10u, callback[0] == '\0' ? "" : ", in ", callback);
}

static void feed(lc_watchdog *w, const longest_turn *turn, uint64_t now_ns)
{
    char text[2 * TEXT_BYTES], why[TEXT_BYTES] = "";
    const lc_feed_message message = lc_feed_due(&w->feed, now_ns, turn->held_ns);
    if (message == LC_FEED_NOTHING) {
        return;
    }
    if (message == LC_FEED_STUCK) {
        describe(w, turn, why, sizeof why);
        snprintf(text, sizeof text, "STATUS=loopcanary: %s", why);
    } else {
        snprintf(text, sizeof text, "WATCHDOG=1%s",
                 message == LC_FEED_RECOVERED ? "\nSTATUS=loopcanary: every loop makes progress again" : "");
    }
    lc_feed_said(&w->feed, message, now_ns, lc_feed_send(&w->feed, text, strlen(text)));
}

static void say_end(const lc_watchdog *w, const longest_turn *turn)
{
    char text[2 * TEXT_BYTES], why[TEXT_BYTES];
    lc_console console = {0};
    describe(w, turn, why, sizeof why);
    const int bytes =
        snprintf(text, sizeof text, "loopcanary: %s: the process ends itself (exit_when_hung)\n", why);
    lc_console_allow(&console, atomic_load(&w->courier->console.device),
                     atomic_load(&w->courier->console.inode));
    (void)lc_console_write(&console, text, (size_t)bytes);
}

static void end_hung(lc_watchdog *w, const longest_turn *turn)
{
    const lc_slot_writer *writer = w->watches[turn->index].writer;
    if (writer != NULL) {
        /* a container's memory ends with it */
        (void)lc_checkpoint_write(&w->checkpoint, w->flight, turn->index, writer->slot);
    }
    if (w->courier != NULL) {
        say_end(w, turn);
    }
    end_hung_process(ABORT_PATIENCE_NS);
}

uint64_t lc_liveness_look(lc_watchdog *w, uint64_t now_ns)
{
    const uint64_t exit_ns = w->settings.exit_hung_ns;
    if (w->feed.interval_ns == 0 && exit_ns == 0) {
        return LC_NO_DEADLINE;
    }
    const longest_turn turn = find_longest(w, now_ns);
    feed(w, &turn, now_ns);
    if (exit_ns != 0 && turn.held_ns >= exit_ns) {
        end_hung(w, &turn);
    }
    const uint64_t soon = turn.some_in_turn ? now_ns + LC_PROGRESS_LOOK_NS : LC_NO_DEADLINE;
    const uint64_t due = lc_feed_next_ns(&w->feed);
    return due < soon ? due : soon;
}
