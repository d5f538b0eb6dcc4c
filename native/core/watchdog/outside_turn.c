
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/clock/clock.h"
#include "core/host/thread_view.h"
#include "core/signals/disposition.h"
#include "core/waits/wait_target.h"
#include "core/watchdog/watch_state.h"

enum { BOOT_LOOKS = 10, EXIT_LOOKS = 5 }; /* in the time without progress: one a second */
enum { MOMENT_BITS = 27 };                /* a moment of CPU time: 134 ms */

/* Where the main thread is, by its frames. */
enum {
    IN_IMPORT = 1u << 0,
    IN_RUNNER = 1u << 1,   /* asyncio's Runner.close, which waits for the executor's threads... */
    IN_TASKS = 1u << 2,    /* ...or still for tasks */
    IN_SHUTDOWN = 1u << 3, /* threading._shutdown */
    IN_EXECUTOR = 1u << 4  /* a thread that waits for those of an executor */
};

/* What stands in a frame of each of them: the end of the file's name, the function or the beginning of it. */
static const struct {
    const char *file, *function;
    uint32_t place;
} places[] = {
    {"importlib._bootstrap>", "_find_and_load", IN_IMPORT},
    {"asyncio/runners.py", "Runner.close", IN_RUNNER},
    {"asyncio/runners.py", "_cancel_all_tasks", IN_TASKS},
    {"threading.py", "_shutdown", IN_SHUTDOWN},
    {"concurrent/futures/thread.py", "ThreadPoolExecutor.shutdown", IN_EXECUTOR},
};

static bool ends_with(lc_text text, const char *end)
{
    const size_t length = strlen(end);
    return text.length >= length && memcmp(text.bytes + text.length - length, end, length) == 0;
}

static uint32_t places_of(lc_watchdog *w, uint64_t thread_state)
{
    uint32_t found = 0;
    if (thread_state == 0 || w->source->walk(w->source, thread_state, w->stack) != LC_WALK_OK) {
        return 0;
    }
    for (uint32_t i = 0; i < w->stack->count; i++) {
        const lc_code_facts *code = w->stack->frames[i].code;
        for (size_t k = 0; k < sizeof places / sizeof *places; k++) {
            const bool is_it = ends_with(code->filename, places[k].file) &&
                               code->qualname.length == strlen(places[k].function) &&
                               ends_with(code->qualname, places[k].function);
            found |= is_it ? places[k].place : 0u;
        }
    }
    return found;
}

static uint32_t places_of_main(lc_watchdog *w)
{
    return places_of(w, w->source->thread_state(w->source, w->flight->header->pid));
}

/* asyncio has an executor's threads waited for by a thread of their own. */
static bool executor_ends(lc_watchdog *w)
{
    lc_thread_ref threads[LC_SLOT_THREADS_MAX];
    const uint32_t count = w->source->threads(w->source, 0, threads, LC_SLOT_THREADS_MAX);
    for (uint32_t i = 0; i < count; i++) {
        if (places_of(w, threads[i].thread_state) & IN_EXECUTOR) {
            return true;
        }
    }
    return false;
}

/* Whether the main thread has or had a lane (a request, say), and one of a loop. */
static void look_for_lanes(const lc_watchdog *w, bool *has_lane, bool *has_loop)
{
    const uint64_t used = LC_ACQUIRE(w->flight->header->sections[LC_SECTION_LANES].used);
    for (uint64_t i = 0; i < used && i < LC_LANE_COUNT; i++) {
        const lc_lane *lane = lc_flight_lane(w->flight, i);
        const bool is_mains =
            LC_ACQUIRE(lane->state) != LC_LANE_FREE && LC_LOAD(lane->tid) == w->flight->header->pid;
        *has_lane |= is_mains;
        *has_loop |= is_mains && strncmp(lane->loop_kind, "thread", sizeof lane->loop_kind) != 0;
    }
}

/* What the program is in: LC_ENDED_BOOT, LC_ENDED_EXIT, or 0. `place`: of the main thread, where that was asked
 * for. */
static uint64_t kind_of(lc_watchdog *w, uint64_t now_ns, bool are_idle, uint32_t *place)
{
    lc_outside *o = &w->outside;
    bool has_lane = false, has_loop = false;
    look_for_lanes(w, &has_lane, &has_loop);
    o->has_booted |= has_lane;
    if (has_loop && (are_idle || atomic_load(&o->exit) != 0)) {
        *place = places_of_main(w);
        return atomic_load(&o->exit) != 0 || (*place & (IN_RUNNER | IN_SHUTDOWN)) ? LC_ENDED_EXIT : 0u;
    }
    if (has_loop || o->has_booted) {
        return 0;
    }
    o->began_ns = o->began_ns != 0 ? o->began_ns : now_ns;
    if (now_ns - o->began_ns >= w->settings.boot_ns) {
        *place = places_of_main(w);
        o->has_booted = !(*place & IN_IMPORT);
    }
    return o->has_booted ? 0u : LC_ENDED_BOOT;
}

static bool has_no_end(const lc_syscall_fields *call)
{
    switch (call->number) {
#ifdef SYS_poll
    case SYS_poll:
        return (int32_t)call->args[2] < 0;
#endif
    case SYS_ppoll:
        return call->args[2] == 0;
    case SYS_accept:
    case SYS_accept4:
        return false;
    default:
        return true;
    }
}

/* Whether the call waits for a connection's peer, for a lock on a file, or for a disk (as only a dead one takes so
 * long). A child process may need that long for its work, and so may the writer of a pipe; a socket without a
 * peer is a server's. */
static bool waits_in_vain(const lc_watchdog *w, uint64_t tid, const lc_syscall_fields *call)
{
    static const char server[] = "bound to ";
    lc_target target;
    const lc_shape_kind shape = lc_syscall_shape_of(call->number).kind;
    const bool is_input = shape == LC_SHAPE_DESCRIPTOR && call->args[0] == STDIN_FILENO;
    if (shape == LC_SHAPE_NONE || shape == LC_SHAPE_SELECT || shape == LC_SHAPE_EPOLL || is_input ||
        !has_no_end(call)) {
        return false;
    }
    lc_wait_target(&w->reader, tid, call, &target);
    if (target.kind == LC_TARGET_FILE) {
        return call->number == SYS_flock || call->number == SYS_fcntl || lc_thread_state_letter(tid) == 'D';
    }
    const size_t lead = sizeof server - 1u;
    const bool is_server = target.length >= lead && memcmp(target.text, server, lead) == 0;
    return target.kind == LC_TARGET_SOCKET && target.length > 0 && !is_server;
}

static bool boot_hangs(lc_watchdog *w, uint32_t place, uint64_t *mark)
{
    const uint64_t main_tid = w->flight->header->pid;
    const lc_syscall_fields call = lc_thread_call(main_tid);
    const bool is_known = lc_thread_cpu_ns((uint32_t)main_tid, mark);
    if (!is_known || !(place & IN_IMPORT) || !lc_waits_for_own_futex(&call)) {
        return is_known && (place & IN_IMPORT) && waits_in_vain(w, main_tid, &call);
    }
    lc_process_waits waits; /* a thread that works may let it go on */
    lc_process_waits_look(false, false, &waits);
    return waits.is_closed;
}

static bool has_handler(int number)
{
    struct sigaction now;
    return lc_disposition_change(number, NULL, &now) != 0 ||
           (now.sa_handler != SIG_DFL && now.sa_handler != SIG_IGN);
}

/* A handler of the program's runs on the main thread while that waits, and may end what it waits for. For SIGINT
 * there is always one: whose it is, Python has said. */
static bool has_handlers(const lc_watchdog *w)
{
    static const int numbers[] = {SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGCHLD, SIGIO};
    bool found = atomic_load(&w->outside.exit) & LC_EXIT_INTERRUPTIBLE;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        found |= has_handler(numbers[i]);
    }
    for (int number = SIGRTMIN; number <= SIGRTMAX; number++) {
        found |= has_handler(number);
    }
    return found;
}

static bool exit_hangs(lc_watchdog *w, uint32_t place, uint64_t *mark)
{
    lc_process_waits waits;
    const bool in_runner = (place & IN_RUNNER) && !(place & IN_TASKS);
    const bool was_interrupted = atomic_load(&w->outside.exit) & LC_EXIT_INTERRUPTED;
    lc_process_waits_look(in_runner, was_interrupted, &waits);
    if (was_interrupted) {
        *mark = waits.cpu_ns >> MOMENT_BITS | 1u;
        return waits.is_known;
    }
    *mark = waits.is_closed ? waits.cpu_ns : 0u;
    return waits.is_closed && (in_runner ? executor_ends(w) : !(place & IN_RUNNER) && !has_handlers(w));
}

static void end_slot(lc_watchdog *w, uint64_t now_ns)
{
    lc_lane_watch *watch = &w->watches[LC_WATCH_OUTSIDE];
    if (watch->writer != NULL) {
        LC_STORE(watch->writer->slot->end_ns, now_ns);
        LC_RELEASE(watch->writer->slot->state, LC_SLOT_ENDED);
        lc_watchdog_call_keeper(w);
        lc_bell_ring(&w->news);
        watch->writer->slot = NULL;
        watch->writer = NULL;
    }
}

uint64_t lc_outside_look(lc_watchdog *w, uint64_t now_ns, bool are_idle)
{
    lc_outside *o = &w->outside;
    uint32_t place = 0;
    uint64_t mark = 0;
    if (w->settings.exit_ns == 0 || (o->kind != 0 && now_ns < o->next_ns)) {
        return o->kind != 0 ? o->next_ns : LC_NO_DEADLINE;
    }
    const uint64_t kind = kind_of(w, now_ns, are_idle, &place);
    const uint64_t limit_ns = kind == LC_ENDED_BOOT ? w->settings.boot_ns : w->settings.exit_ns;
    const bool hangs = kind == LC_ENDED_BOOT   ? boot_hangs(w, place, &mark)
                       : kind == LC_ENDED_EXIT ? exit_hangs(w, place, &mark)
                                               : false;
    const lc_progress_facts facts = {.generation = mark, .turn = 1};
    if (mark == 0) { /* something goes on */
        o->progress = (lc_progress){0};
    }
    const uint64_t held_ns = lc_progress_note(&o->progress, &facts, now_ns);
    if (!hangs || held_ns < limit_ns) {
        end_slot(w, now_ns);
    } else {
        lc_stall_watch_outside(w, LC_WATCH_OUTSIDE, (lc_ended_kind)kind, w->flight->header->pid,
                               now_ns - held_ns, now_ns);
    }
    o->kind = kind;
    o->next_ns =
        kind == 0 ? LC_NO_DEADLINE : now_ns + limit_ns / (kind == LC_ENDED_BOOT ? BOOT_LOOKS : EXIT_LOOKS);
    return o->next_ns;
}
