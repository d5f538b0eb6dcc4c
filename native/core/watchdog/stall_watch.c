
#include <string.h>
#include <unistd.h>

#include "core/host/host_view.h"
#include "core/lane/long_work.h"
#include "core/lane/tally.h"
#include "core/watchdog/watch_state.h"

enum { SHORTEST_SLEEP_NS = 200 * 1000, FRESH_NS = 500 * 1000 * 1000 };
/* the keeper, or the program's drain, has this time to judge a hang */
enum { JUDGING_NS = 150 * 1000 * 1000 };
/* Deep stacks of two threads, and of many, with the code that they are in. */
enum { SAMPLE_ROOM = 12 * 1024, THREADS_ROOM = 16 * 1024 };

/* The lane's state at one moment, in nanoseconds. */
typedef struct {
    uint64_t turn; /* epochs */
    uint64_t callback;
    uint64_t turn_begin_ns;
    uint64_t rest;              /* ticks: lc_lane.turn_rest */
    uint64_t rest_begin_ns;     /* end of the turn's last stalled or granted callback, else its begin */
    uint64_t callback_begin_ns; /* meaningful while `callback` is odd */
} lane_now;

/* What is too long: nothing, the running callback, or the turn as a whole. */
typedef struct {
    uint64_t kind; /* lc_ended_kind, 0 nothing */
    uint64_t epoch;
    uint64_t begin_ns;
    uint64_t limit_ns;
} subject;

void lc_stall_watch_close_view(lc_watchdog *w, uint64_t index)
{
    lc_thread_view *view = &w->watches[index].view;
    if (view->tid != 0) {
        lc_thread_view_close(view);
        w->views_open--;
    }
}

void lc_stall_watch_close_readings(lc_watchdog *w, uint64_t index)
{
    lc_lane_readings *readings = &w->watches[index].readings;
    if (readings->file.fd > 0) {
        lc_lane_readings_close(readings);
        w->readings_open--;
    }
}

/* False: the thread moved on while we looked, at every try. */
static bool read_lane(const lc_watchdog *w, const lc_lane *lane, lane_now *out)
{
    enum { TRIES = 4 };
    for (int i = 0; i < TRIES; i++) {
        out->turn = LC_ACQUIRE(lane->turn_epoch);
        out->callback = LC_ACQUIRE(lane->epoch);
        const uint64_t turn_begin = LC_ACQUIRE(lane->turn_begin);
        const uint64_t callback_begin = LC_ACQUIRE(lane->begin);
        const uint64_t rest = LC_ACQUIRE(lane->turn_rest);
        atomic_thread_fence(memory_order_acquire);
        if (LC_LOAD(lane->turn_epoch) == out->turn && LC_LOAD(lane->epoch) == out->callback) {
            out->turn_begin_ns = lc_flight_ns_near(w->flight, w->now, turn_begin);
            out->rest = rest;
            out->rest_begin_ns = rest ? lc_flight_ns_near(w->flight, w->now, rest) : out->turn_begin_ns;
            out->callback_begin_ns = lc_flight_ns_near(w->flight, w->now, callback_begin);
            return true;
        }
    }
    return false;
}

/* What a later stall of this thread will be reckoned from. `turn_begin_ns`, `callback_begin_ns`: 0 nothing
 * runs. */
static void take_reading(lc_watchdog *w, lc_lane *lane, lc_lane_watch *watch, uint64_t turn_begin_ns,
                         uint64_t callback_begin_ns)
{
    lc_lane_readings *readings = &watch->readings;
    const bool was_open = readings->file.fd > 0;
    if (!was_open && w->readings_open >= LC_LANES_READ) {
        return;
    }
    if (lc_lane_readings_take(readings, LC_LOAD(lane->tid), turn_begin_ns, callback_begin_ns)) {
        LC_STORE(lane->on_cpu_ns, readings->latest.sched.on_cpu_ns);
        LC_STORE(lane->run_queue_ns, readings->latest.sched.run_queue_ns);
    }
    const bool is_open = readings->file.fd > 0;
    w->readings_open += (uint64_t)is_open - (uint64_t)was_open;
    if (is_open && !was_open && lc_kept_files_may_stay()) {
        lc_sampler_prepare(w, lane, watch);
        lc_host_view_open(&w->host);
    }
}

/* ---- what goes on ------------------------------------------------------------------------- */

static uint64_t elapsed(uint64_t from_ns, uint64_t now_ns) { return now_ns > from_ns ? now_ns - from_ns : 0; }

static subject find_subject(const lc_watchdog *w, const lc_lane *lane, const lane_now *now, uint64_t now_ns)
{
    const uint64_t delay = lc_ticks_to_ns(LC_LOAD(lane->sample_delay), lc_stall_rate(w));
    if ((now->callback & 1u) && elapsed(now->callback_begin_ns, now_ns) >= delay) {
        return (subject){LC_ENDED_CALLBACK, now->callback, now->callback_begin_ns,
                         lc_stall_limit_ns(w, lc_lane_limit(lane, now->callback))};
    }
    if (elapsed(now->rest_begin_ns, now_ns) >= delay) {
        return (subject){LC_ENDED_TURN, 0, now->rest_begin_ns,
                         lc_stall_limit_ns(w, LC_LOAD(lane->threshold))};
    }
    return (subject){0, 0, 0, 0};
}

static void bind_slot(lc_lane_watch *watch, const subject *s, const lane_now *now)
{
    lc_slot *slot = watch->writer->slot;
    lc_stall_slot_forget_names(slot);
    lc_stall_slot_put_before(slot, watch, s->begin_ns);
    LC_STORE(slot->kind, s->kind);
    LC_STORE(slot->epoch, s->epoch);
    LC_STORE(slot->turn_epoch, now->turn);
    LC_STORE(slot->begin_ns, s->begin_ns);
    LC_STORE(slot->turn_begin_ns, now->rest_begin_ns);
    watch->rest = now->rest;
}

/* When to look whether this work goes on. Most work that has just begun is over soon: what is looked at
 * then has begun later, and is found within a tick all the same. */
static uint64_t look_again(const lc_watchdog *w, uint64_t begin_ns, uint64_t delay_ns, uint64_t now_ns)
{
    const bool is_fresh = elapsed(begin_ns, now_ns) < delay_ns / 4u;
    return begin_ns + (is_fresh ? w->settings.tick_ns : delay_ns);
}

static uint64_t next_suspicion(const lc_watchdog *w, const lc_lane *lane, const lane_now *now,
                               uint64_t now_ns)
{
    const uint64_t delay = lc_ticks_to_ns(LC_LOAD(lane->sample_delay), lc_stall_rate(w));
    const uint64_t tick_at = now_ns + w->settings.tick_ns;
    const uint64_t turn_at = look_again(w, now->rest_begin_ns, delay, now_ns);
    const uint64_t callback_at =
        now->callback & 1u ? look_again(w, now->callback_begin_ns, delay, now_ns) : tick_at;
    return callback_at < turn_at ? callback_at : turn_at;
}

/* The slot follows a part of the turn, and a stalled or granted callback has ended that part. */
static bool is_of_earlier_part(const lc_lane_watch *watch, const subject *s, const lane_now *now)
{
    return s->kind == LC_ENDED_TURN && LC_LOAD(watch->writer->slot->kind) == LC_ENDED_TURN &&
           watch->rest != now->rest;
}

/* A turn that is a stall already stays the subject until one of its callbacks is a stall by itself. */
static bool must_rebind(const lc_lane_watch *watch, const subject *s, const lane_now *now, uint64_t now_ns)
{
    const lc_slot *slot = watch->writer->slot;
    if (is_of_earlier_part(watch, s, now)) {
        return true;
    }
    if (LC_LOAD(slot->kind) == s->kind && LC_LOAD(slot->epoch) == s->epoch) {
        return false;
    }
    return LC_LOAD(slot->state) != LC_SLOT_STALL || elapsed(s->begin_ns, now_ns) > s->limit_ns;
}

/* At a hang's begin, and each time it has doubled: a copy on disk, whatever becomes of this machine's
 * memory. A keeper stores it: where there is one, no thread of the program waits for a disk. */
static void save_hang(lc_watchdog *w, lc_lane_watch *watch, uint64_t busy_ns)
{
    const lc_slot *slot = watch->writer->slot;
    const bool has_keeper = LC_LOAD(w->flight->header->takes) == LC_TAKES_KEEPER;
    if (!has_keeper && busy_ns >= watch->next_checkpoint_ns && slot->lane < LC_LANE_COUNT &&
        lc_checkpoint_write(&w->checkpoint, w->flight, slot->lane, slot)) {
        watch->next_checkpoint_ns = 2u * busy_ns;
    }
}

/* The stall may go on in another slot. What was read before stays where it is: the last of a thread
 * counts. */
static void sample_all_threads(lc_watchdog *w, const lc_lane *lane, lc_lane_watch *watch)
{
    lc_stall_slot_make_room(w, watch, THREADS_ROOM);
    lc_sampler_take_threads(w, lane, watch);
}

static bool has_fresh_threads(const lc_slot *slot, uint64_t now_ns)
{
    const uint64_t count = LC_LOAD(slot->thread_count);
    return count > 0 && elapsed(slot->threads[count - 1u].at_ns, now_ns) < FRESH_NS;
}

void lc_stall_watch_take_threads(lc_watchdog *w, uint64_t index)
{
    lc_lane_watch *watch = &w->watches[index];
    if (watch->writer != NULL && LC_LOAD(watch->writer->slot->state) == LC_SLOT_STALL &&
        !has_fresh_threads(watch->writer->slot, lc_now_ns())) {
        sample_all_threads(w, lc_watched_lane(w, index), watch);
    }
}

static void raise_level(lc_watchdog *w, const lc_lane *lane, lc_lane_watch *watch, uint64_t busy_ns)
{
    const uint64_t level = LC_LOAD(watch->writer->slot->level);
    if (level < LC_LEVEL_HANG && busy_ns >= w->settings.hang_ns) {
        sample_all_threads(w, lane, watch);
    }
    lc_slot *slot = watch->writer->slot;
    if (level < LC_LEVEL_STALL) {
        LC_STORE(slot->level, LC_LEVEL_STALL);
        LC_RELEASE(slot->state, LC_SLOT_STALL);
        lc_watchdog_call_keeper(w);
    }
    if (level < LC_LEVEL_HANG && busy_ns >= w->settings.hang_ns) {
        LC_RELEASE(slot->level, LC_LEVEL_HANG);
        watch->word_ns = lc_now_ns() + JUDGING_NS;
        lc_bell_ring(&w->news);
        lc_watchdog_call_keeper(w);
    }
    if (level < LC_LEVEL_ANR && busy_ns >= w->settings.anr_ns) {
        LC_RELEASE(slot->level, LC_LEVEL_ANR);
        lc_bell_ring(&w->news);
        lc_watchdog_call_keeper(w);
    }
    if (busy_ns >= w->settings.hang_ns) {
        save_hang(w, watch, busy_ns);
    }
}

/* The stall may have been in another slot when it was judged. */
static bool was_judged(const lc_watchdog *w, uint64_t serial)
{
    for (uint64_t i = 0; i < LC_SLOT_COUNT; i++) {
        if (LC_LOAD(w->flight->keeper->told[i]) == serial) {
            return true;
        }
    }
    return false;
}

static void say_first(const lc_watchdog *w, lc_lane_watch *watch, uint64_t busy_ns, uint64_t now_ns)
{
    if (watch->word_ns == 0 || now_ns < watch->word_ns) {
        return;
    }
    watch->word_ns = 0;
    if (w->courier != NULL && !was_judged(w, LC_LOAD(watch->writer->slot->serial))) {
        lc_courier_say_first(w->courier, watch->writer->slot, busy_ns);
    }
}

static uint64_t earliest_after(uint64_t now_ns, uint64_t best, uint64_t candidate)
{
    return candidate > now_ns && candidate < best ? candidate : best;
}

static void sample(lc_watchdog *w, const lc_lane *lane, lc_lane_watch *watch, uint64_t now_ns)
{
    lc_stall_slot_make_room(w, watch, SAMPLE_ROOM);
    lc_sampler_take(w, lane, watch, now_ns);
    watch->next_sample_ns = now_ns + LC_LOAD(watch->writer->slot->interval_ns);
}

static uint64_t follow(lc_watchdog *w, lc_lane *lane, lc_lane_watch *watch, const subject *s, uint64_t now_ns)
{
    if (now_ns >= watch->next_sample_ns) {
        sample(w, lane, watch, now_ns);
    }
    lc_slot *slot = watch->writer->slot;
    /* Whatever it is now, the turn may turn out to be the sum of many callbacks. */
    lc_tally_ask(lane, LC_LOAD(slot->turn_epoch));
    lc_tally_copy(watch->writer, lane, w->flight, w->now, w->source);
    lc_host_watch_during(&w->host, watch->writer, now_ns);
    const uint64_t busy_ns = elapsed(s->begin_ns, now_ns);
    LC_STORE(slot->last_look_ns, now_ns);
    LC_STORE(slot->allowance_ns, s->limit_ns > slot->threshold_ns ? s->limit_ns : 0u);
    if (busy_ns > s->limit_ns) {
        raise_level(w, lane, watch, busy_ns);
        say_first(w, watch, busy_ns, now_ns);
    }
    uint64_t next = watch->next_sample_ns;
    next = earliest_after(now_ns, next, watch->word_ns);
    next = earliest_after(now_ns, next, s->begin_ns + s->limit_ns + 1u);
    next = earliest_after(now_ns, next, s->begin_ns + w->settings.hang_ns);
    return earliest_after(now_ns, next, s->begin_ns + w->settings.anr_ns);
}

/* The slot's turn is over. A record that came after we had looked for it tells how it ended. */
static void leave_slot(lc_watchdog *w, uint64_t index, lc_lane *lane, lc_lane_watch *watch)
{
    if (watch->writer != NULL) {
        lc_stall_slot_take_ended(w, index, lane, watch);
        lc_stall_slot_release(watch);
    }
}

/* Gives the present work a slot, unless it has one. False: there is no slot. */
static bool ensure_slot(lc_watchdog *w, uint64_t index, lc_lane *lane, lc_lane_watch *watch, const subject *s,
                        const lane_now *now, uint64_t now_ns)
{
    if (watch->writer == NULL) {
        lc_slot *slot = lc_stall_slot_open(w, index, lane, watch);
        if (slot == NULL) {
            return false;
        }
        bind_slot(watch, s, now);
        watch->next_sample_ns = now_ns;
        LC_RELEASE(slot->state, LC_SLOT_OPEN);
    } else if (must_rebind(watch, s, now, now_ns)) {
        if (is_of_earlier_part(watch, s, now)) { /* that was no stall: it has no record */
            LC_STORE(watch->writer->slot->level, LC_LEVEL_NONE);
            LC_RELEASE(watch->writer->slot->state, LC_SLOT_OPEN);
        }
        bind_slot(watch, s, now);
        watch->next_sample_ns = now_ns;
        if (s->kind == LC_ENDED_CALLBACK) { /* samples of what came before it do not count for it */
            LC_STORE(watch->writer->slot->interval_ns, w->settings.sample_interval_ns);
        }
    }
    return true;
}

static uint64_t look_busy(lc_watchdog *w, uint64_t index, lc_lane *lane, lc_lane_watch *watch,
                          uint64_t now_ns)
{
    lane_now now;
    watch->active_ns = now_ns;
    if (!read_lane(w, lane, &now) || !(now.turn & 1u)) {
        return now_ns + w->settings.tick_ns;
    }
    if (watch->writer != NULL && LC_LOAD(watch->writer->slot->turn_epoch) != now.turn) {
        leave_slot(w, index, lane, watch);
    }
    take_reading(w, lane, watch, now.turn_begin_ns, now.callback & 1u ? now.callback_begin_ns : 0u);
    const subject s = find_subject(w, lane, &now, now_ns);
    if (s.kind == 0) {
        return next_suspicion(w, lane, &now, now_ns);
    }
    return ensure_slot(w, index, lane, watch, &s, &now, now_ns) ? follow(w, lane, watch, &s, now_ns)
                                                                : now_ns + w->settings.tick_ns;
}

static bool follow_now(lc_watchdog *w, uint64_t index, lc_lane *lane, const subject *s, const lane_now *now,
                       uint64_t now_ns)
{
    lc_lane_watch *watch = &w->watches[index];
    if (!ensure_slot(w, index, lane, watch, s, now, now_ns)) {
        return false;
    }
    watch->next_sample_ns = now_ns;
    (void)follow(w, lane, watch, s, now_ns);
    return true;
}

/* False: it is in no turn, or there is no slot. */
static bool fault_in_turn(lc_watchdog *w, uint64_t index, uint64_t now_ns)
{
    lc_lane *lane = lc_flight_lane(w->flight, index);
    lc_lane_watch *watch = &w->watches[index];
    lane_now now;
    lc_stall_slot_take_ended(w, index, lane, watch); /* else its slot would be taken for the fault */
    if (LC_ACQUIRE(lane->state) != LC_LANE_ACTIVE || !read_lane(w, lane, &now) || !(now.turn & 1u)) {
        return false;
    }
    if (watch->writer != NULL && LC_LOAD(watch->writer->slot->turn_epoch) != now.turn) {
        leave_slot(w, index, lane, watch);
    }
    const subject s = now.callback & 1u ? (subject){LC_ENDED_CALLBACK, now.callback, now.callback_begin_ns, 0}
                                        : (subject){LC_ENDED_TURN, 0, now.rest_begin_ns, 0};
    return follow_now(w, index, lane, &s, &now, now_ns);
}

static void name_no_lane(lc_watchdog *w, lc_lane *lane, uint64_t tid)
{
    static const char kind[] = "thread";
    const uint64_t thread_state = w->source->thread_state(w->source, tid);
    const lc_text name = w->source->thread_name(w->source, thread_state, tid);
    memset(lane, 0, sizeof *lane);
    memcpy(lane->loop_kind, kind, sizeof kind);
    if (name.length > 0) {
        memcpy(lane->thread_name, name.bytes,
               name.length < sizeof lane->thread_name ? name.length : sizeof lane->thread_name - 1u);
    } else if ((pid_t)tid == getpid()) {
        strcpy(lane->thread_name, "MainThread");
    }
    LC_STORE(lane->tid, tid);
    LC_STORE(lane->thread_state, thread_state);
    LC_STORE(lane->turn_epoch, 1);
}

void lc_stall_watch_outside(lc_watchdog *w, uint64_t index, lc_ended_kind kind, uint64_t tid,
                            uint64_t begin_ns, uint64_t now_ns)
{
    lc_lane *lane = lc_watched_lane(w, index);
    const lane_now now = {.turn = 1, .turn_begin_ns = begin_ns};
    const subject s = {kind, 0, begin_ns, 0};
    if (w->watches[index].writer == NULL) {
        name_no_lane(w, lane, tid);
    }
    (void)follow_now(w, index, lane, &s, &now, now_ns);
    w->watches[index].word_ns =
        0; /* a program may be in no turn: it is the judge who says that this is a fault */
}

void lc_stall_watch_take_fault(lc_watchdog *w, uint64_t tid, uint64_t at_ns)
{
    const uint64_t used = LC_ACQUIRE(w->flight->header->sections[LC_SECTION_LANES].used),
                   now_ns = lc_now_ns();
    bool is_taken = false;
    lc_stall_slot_release(&w->watches[LC_WATCH_FAULT]); /* the program has survived the fault before */
    for (uint64_t i = 0; i < used && i < LC_LANE_COUNT && !is_taken; i++) {
        is_taken = LC_LOAD(lc_flight_lane(w->flight, i)->tid) == tid && fault_in_turn(w, i, now_ns);
    }
    if (!is_taken) {
        lc_stall_watch_outside(w, LC_WATCH_FAULT, LC_ENDED_FAULT, tid, at_ns != 0 ? at_ns : now_ns, now_ns);
    }
}

static uint64_t look_idle(lc_watchdog *w, uint64_t index, lc_lane *lane, lc_lane_watch *watch, uint64_t turn,
                          uint64_t now_ns)
{
    leave_slot(w, index, lane, watch);
    take_reading(w, lane, watch, 0, 0);
    if (turn != watch->turns_seen) {
        watch->active_ns = now_ns;
    }
    const bool long_idle = elapsed(watch->active_ns, now_ns) >= w->settings.park_ns;
    return long_idle ? LC_NO_DEADLINE : now_ns + w->settings.tick_ns;
}

uint64_t lc_stall_watch_look(lc_watchdog *w, uint64_t index, uint64_t now_ns)
{
    lc_lane *lane = lc_flight_lane(w->flight, index);
    lc_lane_watch *watch = &w->watches[index];
    if (LC_ACQUIRE(lane->state) == LC_LANE_FREE) {
        return LC_NO_DEADLINE;
    }
    lc_stall_slot_take_ended(w, index, lane, watch);
    const uint64_t generation = LC_LOAD(lane->generation);
    if (generation != watch->generation || LC_ACQUIRE(lane->state) == LC_LANE_CLOSED) {
        lc_stall_slot_release(watch);
        lc_stall_watch_close_view(w, index);
        lc_stall_watch_close_readings(w, index);
        watch->generation = generation;
    }
    if (LC_ACQUIRE(lane->state) != LC_LANE_ACTIVE) {
        return LC_NO_DEADLINE;
    }
    lc_long_work_relax(lane, w->now.ticks, lc_stall_rate(w));
    const uint64_t turn = LC_ACQUIRE(lane->turn_epoch);
    const uint64_t next =
        turn & 1u ? look_busy(w, index, lane, watch, now_ns) : look_idle(w, index, lane, watch, turn, now_ns);
    watch->turns_seen = turn;
    return next == LC_NO_DEADLINE || next > now_ns + SHORTEST_SLEEP_NS ? next : now_ns + SHORTEST_SLEEP_NS;
}
