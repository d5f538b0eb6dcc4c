#include "core/watchdog/watch_state.h"

#include <string.h>

#include "core/lane/tally.h"

/* A lane's limit. What can only be the configured threshold is that, to the nanosecond: the lane's ticks
 * were made of it at a rate that has been refined since. */
uint64_t lc_stall_limit_ns(const lc_watchdog *w, uint64_t ticks)
{
    enum { RATE_ERRORS = 4096 }; /* one part in so many is more than any rate is wrong */
    const uint64_t ns = lc_ticks_to_ns(ticks, lc_stall_rate(w));
    const uint64_t exact = w->settings.threshold_ns;
    const uint64_t apart = ns > exact ? ns - exact : exact - ns;
    return apart <= exact / RATE_ERRORS ? exact : ns;
}

/* ---- slots ------------------------------------------------------------------------------ */

void lc_stall_slot_release(lc_lane_watch *watch)
{
    if (watch->writer != NULL) {
        LC_RELEASE(watch->writer->slot->state, LC_SLOT_FREE);
        watch->writer->slot = NULL;
        watch->writer = NULL;
    }
}

/* A keeper has stored the stall that is in the slot. Whatever it wrote there: only the serial of one that
 * has ended counts. */
static bool was_taken(const lc_watchdog *w, uint64_t index, const lc_slot *slot)
{
    return LC_LOAD(slot->state) == LC_SLOT_ENDED &&
           LC_ACQUIRE(w->flight->keeper->taken[index]) == LC_LOAD(slot->serial);
}

static lc_slot_writer *free_writer(lc_watchdog *w)
{
    /* Lowest first: the file's pages are touched only as stalls overlap. */
    for (uint64_t i = 0; i < LC_SLOT_COUNT; i++) {
        if (w->writers[i].slot != NULL) {
            continue;
        }
        lc_slot *slot = lc_flight_claim(w->flight, LC_SECTION_SLOTS, i);
        if (slot == NULL) {
            return NULL;
        }
        if (was_taken(w, i, slot)) {
            LC_STORE(slot->state, LC_SLOT_FREE);
        }
        if (LC_ACQUIRE(slot->state) == LC_SLOT_FREE) {
            atomic_thread_fence(memory_order_release); /* readers see that before the slot is wiped */
            lc_slot_writer_begin(&w->writers[i], slot);
            return &w->writers[i];
        }
    }
    return NULL;
}

/* Nothing is in it by which a reader would know a stall: one that was moved is elsewhere. */
static void give_back(lc_slot_writer *writer)
{
    lc_slot *slot = writer->slot;
    LC_STORE(slot->state, LC_SLOT_FREE);
    atomic_thread_fence(memory_order_release);
    LC_STORE(slot->kind, 0);
    LC_STORE(slot->epoch, 0);
    LC_STORE(slot->turn_epoch, 0);
    writer->slot = NULL;
}

/* All samples first: what earlier thinning and other work have left behind may be enough. Threads have
 * stacks, too, so that even half of the samples may go with nearly nothing. */
static uint64_t move_if_worth(lc_watchdog *w, lc_slot_writer *to, const lc_slot_writer *from)
{
    enum { LEAST_GAIN = 4 * 1024 };
    for (uint64_t one_of = 1; one_of <= 2; one_of++) {
        lc_slot_move(to, from, one_of, w->moved);
        if (lc_slot_room(to->slot) >= lc_slot_room(from->slot) + LEAST_GAIN) {
            return one_of;
        }
    }
    return 0;
}

void lc_stall_slot_make_room(lc_watchdog *w, lc_lane_watch *watch, uint64_t bytes)
{
    enum { FEWEST = 4, PAUSE = 16 };
    lc_slot_writer *from = watch->writer;
    if (lc_slot_room(from->slot) >= bytes || LC_LOAD(from->slot->sample_count) < FEWEST) {
        return;
    }
    if (from->pause > 0) {
        from->pause--;
        return;
    }
    from->pause = PAUSE;
    lc_slot_writer *to = free_writer(w);
    if (to == NULL) {
        return;
    }
    const uint64_t one_of = move_if_worth(w, to, from);
    if (one_of == 0) {
        give_back(to);
        return;
    }
    LC_STORE(to->slot->interval_ns, one_of * LC_LOAD(from->slot->interval_ns));
    LC_RELEASE(to->slot->state, LC_LOAD(from->slot->state));
    give_back(from);
    watch->writer = to;
    watch->wait = (lc_wait_memory){0}; /* it refers to the old slot */
    if (LC_LOAD(to->slot->state) == LC_SLOT_STALL) {
        lc_watchdog_call_keeper(w); /* who went over the slots meanwhile may have missed it */
    }
}

lc_slot *lc_stall_slot_open(lc_watchdog *w, uint64_t index, const lc_lane *lane, lc_lane_watch *watch)
{
    lc_slot_writer *writer = free_writer(w);
    if (writer == NULL) {
        return NULL;
    }
    lc_slot *slot = writer->slot;
    slot->lane = index;
    slot->lane_generation = LC_LOAD(lane->generation);
    slot->tid = LC_LOAD(lane->tid);
    slot->threshold_ns = lc_stall_limit_ns(w, LC_LOAD(lane->threshold));
    memcpy(slot->loop_kind, lane->loop_kind, sizeof slot->loop_kind);
    memcpy(slot->thread_name, lane->thread_name, sizeof slot->thread_name);
    LC_STORE(slot->interval_ns, w->settings.sample_interval_ns);
    LC_STORE(slot->gc_ns_begin, LC_LOAD(w->flight->header->gc_total_ns));
    LC_STORE(slot->serial, ++w->next_serial);
    watch->writer = writer;
    watch->next_checkpoint_ns = 0;
    watch->word_ns = 0;
    return slot;
}

void lc_stall_slot_forget_names(lc_slot *slot)
{
    const lc_ref none = {0, 0};
    slot->work_read_ns = 0;
    slot->callback = none;
    slot->task = none;
    slot->scene = none;
}

/* The time comes last, and is 0 meanwhile: the three belong together. */
void lc_stall_slot_put_before(lc_slot *slot, const lc_lane_watch *watch, uint64_t begin_ns)
{
    const lc_lane_reading *before = lc_lane_readings_before(&watch->readings, begin_ns);
    LC_STORE(slot->before_at_ns, 0);
    if (before == NULL) {
        return;
    }
    atomic_thread_fence(memory_order_release);
    LC_STORE(slot->before_on_cpu_ns, before->sched.on_cpu_ns);
    LC_STORE(slot->before_run_queue_ns, before->sched.run_queue_ns);
    LC_RELEASE(slot->before_at_ns, before->at_ns < begin_ns ? before->at_ns : begin_ns);
}

/* ---- what has ended ----------------------------------------------------------------------- */

static bool copy_ended(const lc_lane *lane, uint64_t sequence, lc_ended *out)
{
    const lc_ended *entry = &lane->ended[(sequence - 1u) % LC_ENDED_COUNT];
    if (LC_ACQUIRE(entry->sequence) != sequence) {
        return false;
    }
    for (size_t i = 0; i < sizeof *out / sizeof(lc_word); i++) {
        LC_STORE(((lc_word *)out)[i], LC_LOAD(((const lc_word *)entry)[i]));
    }
    atomic_thread_fence(memory_order_acquire);
    return LC_LOAD(entry->sequence) == sequence;
}

static lc_level level_of(const lc_watchdog *w, uint64_t ns)
{
    return ns >= w->settings.anr_ns    ? LC_LEVEL_ANR
           : ns >= w->settings.hang_ns ? LC_LEVEL_HANG
                                       : LC_LEVEL_STALL;
}

static void complete(lc_watchdog *w, const lc_lane *lane, const lc_lane_watch *watch, const lc_ended *e,
                     uint64_t begin_ns, uint64_t end_ns)
{
    lc_slot *slot = watch->writer->slot;
    const uint64_t turn_begin_ns = lc_least(begin_ns, lc_flight_ns_near(w->flight, w->now, e->turn_begin));
    /* sums of ticks have the time in them that the machine slept */
    const uint64_t turn_ns = end_ns - turn_begin_ns;
    if (e->epoch == 0 || LC_LOAD(slot->epoch) != e->epoch) {
        lc_stall_slot_forget_names(slot); /* they were read of another callback of the turn */
    }
    LC_STORE(slot->kind, e->kind);
    LC_STORE(slot->epoch, e->epoch);
    LC_STORE(slot->turn_epoch, e->turn_epoch);
    LC_STORE(slot->begin_ns, begin_ns);
    LC_STORE(slot->turn_begin_ns, turn_begin_ns);
    LC_STORE(slot->last_look_ns, end_ns);
    LC_STORE(slot->turn_callbacks, e->turn_callbacks);
    LC_STORE(slot->turn_callback_ns,
             lc_least(turn_ns, lc_ticks_to_ns(e->turn_callback_ticks, lc_stall_rate(w))));
    LC_STORE(slot->longest_ns, lc_least(turn_ns, lc_ticks_to_ns(e->longest_ticks, lc_stall_rate(w))));
    LC_STORE(slot->end_cpu_ns, e->cpu_ns);
    LC_STORE(slot->queue_ns,
             begin_ns - lc_least(begin_ns, lc_flight_ns_near(w->flight, w->now, e->begin - e->queue_ticks)));
    LC_STORE(slot->level, level_of(w, end_ns - begin_ns));
    lc_stall_slot_put_before(slot, watch, begin_ns);
    if (e->end >= LC_LOAD(lane->turn_rest)) { /* else the tally is of what came after it */
        lc_tally_copy(watch->writer, lane, w->flight, w->now, w->source);
    }
    lc_host_watch_at_end(&w->host, watch->writer, begin_ns);
    LC_STORE(slot->end_ns, end_ns);
    LC_RELEASE(slot->state, LC_SLOT_ENDED);
    lc_flight_count(w->flight, LC_COUNTER_stalls_recorded, 1);
    if (LC_LOAD(slot->sample_count) == 0) {
        lc_flight_count(w->flight, LC_COUNTER_stalls_unsampled, 1);
    }
    lc_watchdog_call_keeper(w);
    lc_bell_ring(&w->news);
}

/* Its thread judged by ticks, which go on while the machine sleeps and when their counter is set. */
static bool was_no_stall(const lc_watchdog *w, const lc_lane *lane, const lc_ended *e, uint64_t took_ns)
{
    enum { STEP_NS = 1000000 };
    const bool stepped = lc_ticks_to_ns(e->end - e->begin, lc_stall_rate(w)) > took_ns + STEP_NS;
    const uint64_t limit =
        e->kind == LC_ENDED_CALLBACK ? lc_lane_limit(lane, e->epoch) : LC_LOAD(lane->threshold);
    return stepped && took_ns <= lc_stall_limit_ns(w, limit);
}

/* One too many in this minute. Hangs may have been told already, and cannot be many. */
static bool is_over_limit(lc_watchdog *w, uint64_t took_ns)
{
    return LC_LOAD(w->flight->header->takes) == LC_TAKES_KEEPER && !lc_storm_admits(&w->storm, w->now.ns) &&
           took_ns < w->settings.hang_ns;
}

/* The record is of a part of the turn that ended where the slot's callback begins. */
static bool is_after(const lc_slot *slot, const lc_ended *e, uint64_t end_ns)
{
    enum { JITTER_NS = 100000 };
    return e->kind == LC_ENDED_TURN && LC_LOAD(slot->kind) == LC_ENDED_CALLBACK &&
           LC_LOAD(slot->turn_epoch) == e->turn_epoch && LC_LOAD(slot->begin_ns) + JITTER_NS > end_ns;
}

static void finish_in(lc_watchdog *w, uint64_t index, const lc_lane *lane, lc_lane_watch *watch, lc_ended *e,
                      uint64_t begin_ns, uint64_t end_ns)
{
    if (watch->writer != NULL && LC_LOAD(watch->writer->slot->turn_epoch) != e->turn_epoch) {
        lc_stall_slot_release(watch);
    }
    if (watch->writer == NULL && lc_stall_slot_open(w, index, lane, watch) == NULL) {
        lc_flight_count(w->flight, LC_COUNTER_stalls_dropped_no_slot, 1);
        return;
    }
    complete(w, lane, watch, e, begin_ns, end_ns);
    watch->writer->slot = NULL;
    watch->writer = NULL;
}

static void finish(lc_watchdog *w, uint64_t index, const lc_lane *lane, lc_lane_watch *watch, lc_ended *e)
{
    const uint64_t end_ns = lc_flight_ns_near(w->flight, w->now, e->end);
    const uint64_t begin_ns = lc_least(end_ns, lc_flight_ns_near(w->flight, w->now, e->begin));
    const bool is_next = watch->writer != NULL && is_after(watch->writer->slot, e, end_ns);
    bool is_dropped = was_no_stall(w, lane, e, end_ns - begin_ns);
    if (!is_dropped && is_over_limit(w, end_ns - begin_ns)) {
        lc_flight_count(w->flight, LC_COUNTER_stalls_suppressed_storm, 1);
        is_dropped = true;
    }
    if (is_dropped && !is_next) {
        lc_stall_slot_release(watch);
    }
    if (is_dropped) {
        return;
    }
    if (!is_next) {
        finish_in(w, index, lane, watch, e, begin_ns, end_ns);
        return;
    }
    lc_slot_writer *writer = watch->writer;
    const uint64_t checkpoint_ns = watch->next_checkpoint_ns, word_ns = watch->word_ns;
    watch->writer = NULL;
    finish_in(w, index, lane, watch, e, begin_ns, end_ns);
    watch->writer = writer;
    watch->next_checkpoint_ns = checkpoint_ns;
    watch->word_ns = word_ns;
}

void lc_stall_slot_take_ended(lc_watchdog *w, uint64_t index, lc_lane *lane, lc_lane_watch *watch)
{
    const uint64_t count = LC_ACQUIRE(lane->ended_count);
    uint64_t seen = LC_LOAD(lane->ended_seen);
    if (count - seen > LC_ENDED_COUNT) {
        lc_flight_count(w->flight, LC_COUNTER_stalls_dropped_ring_full, count - seen - LC_ENDED_COUNT);
        seen = count - LC_ENDED_COUNT;
    }
    if (seen < count) {
        w->now = lc_flight_pair_clocks(w->flight); /* not before one of them ended */
    }
    while (seen < count) {
        lc_ended e;
        if (copy_ended(lane, ++seen, &e)) {
            finish(w, index, lane, watch, &e);
        } else {
            lc_flight_count(w->flight, LC_COUNTER_stalls_dropped_ring_full, 1);
        }
        LC_RELEASE(lane->ended_seen, seen);
    }
}
