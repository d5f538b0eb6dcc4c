#include "core/lane/lane.h"

#include "core/lane/long_work.h"

static uint64_t thread_cpu_ns(void) { return lc_clock_read_ns(CLOCK_THREAD_CPUTIME_ID); }

void lc_lane_wake_watchdog(const lc_lane_context *context)
{
    /* The thread that turns the word back rings; the others need not. */
    if (atomic_exchange_explicit(&context->header->parked, 0, memory_order_acq_rel)) {
        lc_bell_ring(context->watchdog_bell);
    }
}

static lc_callbacks callbacks_of(const lc_lane *lane)
{
    return (lc_callbacks){LC_LOAD(lane->turn_callbacks), LC_LOAD(lane->turn_callback_ticks),
                          LC_LOAD(lane->turn_longest), LC_LOAD(lane->turn_longest_epoch)};
}

static uint64_t rest_begin(const lc_lane *lane)
{
    const uint64_t rest = LC_LOAD(lane->turn_rest);
    return rest ? rest : LC_LOAD(lane->turn_begin);
}

static void record(const lc_lane_context *context, lc_lane *lane, lc_ended_kind kind, uint64_t epoch,
                   const lc_callbacks *of, uint64_t begin, uint64_t end, uint64_t cpu_ns)
{
    const uint64_t sequence = LC_LOAD(lane->ended_count) + 1u;
    lc_ended *entry = &lane->ended[(sequence - 1u) % LC_ENDED_COUNT];
    LC_STORE(entry->sequence, 0);
    atomic_thread_fence(memory_order_release);
    LC_STORE(entry->kind, kind);
    LC_STORE(entry->epoch, epoch);
    LC_STORE(entry->turn_epoch, LC_LOAD(lane->turn_epoch));
    LC_STORE(entry->begin, begin);
    LC_STORE(entry->end, end);
    LC_STORE(entry->turn_begin, rest_begin(lane));
    LC_STORE(entry->turn_callbacks, of->count);
    LC_STORE(entry->turn_callback_ticks, of->ticks);
    LC_STORE(entry->longest_ticks, of->longest);
    LC_STORE(entry->cpu_ns, cpu_ns);
    LC_STORE(entry->queue_ticks, kind == LC_ENDED_CALLBACK ? LC_LOAD(lane->queue_ticks) : 0u);
    LC_RELEASE(entry->sequence, sequence);
    LC_RELEASE(lane->ended_count, sequence);
    LC_ADD(lane->stalls, 1u);
    LC_ADD(lane->stalled_ticks, end - begin);
    lc_bell_ring(context->watchdog_bell);
}

/* What is left of the turn, up to a callback that is judged alone, or to the turn's end. `is_now`: it ends
 * now; the thread's CPU time then is known. */
static void rest_ended(const lc_lane_context *context, lc_lane *lane, const lc_callbacks *of, uint64_t end,
                       bool is_now)
{
    const uint64_t begin = rest_begin(lane);
    if (end <= begin) {
        return;
    }
    const bool stalled = end - begin > LC_LOAD(lane->threshold);
    lc_long_work_add_turn(context, lane, of, begin, end, stalled);
    if (stalled) {
        record(context, lane, LC_ENDED_TURN, of->longest ? of->longest_epoch : 0u, of, begin, end,
               is_now ? thread_cpu_ns() : 0u);
    }
}

/* What comes after this callback is judged by itself. */
static void leave_behind(lc_lane *lane, uint64_t end)
{
    LC_ADD(lane->callbacks, LC_LOAD(lane->turn_callbacks));
    LC_ADD(lane->callback_ticks, LC_LOAD(lane->turn_callback_ticks));
    LC_STORE(lane->turn_callbacks, 0);
    LC_STORE(lane->turn_callback_ticks, 0);
    LC_STORE(lane->turn_longest, 0);
    LC_STORE(lane->long_turn_ticks, 0);
    LC_RELEASE(lane->tally_turn, 0);
    LC_RELEASE(lane->turn_rest, end);
}

/* `longest_before`: of the callbacks since the turn's begin, or since the last that was judged alone. */
static void callback_stalled(const lc_lane_context *context, lc_lane *lane, uint64_t begin, uint64_t end,
                             uint64_t longest_before)
{
    const uint64_t epoch = LC_LOAD(lane->epoch), took = end - begin;
    const lc_callbacks all = callbacks_of(lane);
    const bool in_turn = lc_lane_in_turn(lane); /* a turn may have ended in the callback, with all its sums */
    if (in_turn) {
        const lc_callbacks before = {all.count - 1u, all.ticks - took, longest_before, 0};
        LC_STORE(lane->long_turn_ticks, LC_LOAD(lane->long_turn_ticks) - took); /* it is recorded by now */
        rest_ended(context, lane, &before, begin, false);
    }
    if (took <= lc_lane_limit(lane, epoch)) {
        atomic_fetch_add_explicit(&context->counters[LC_COUNTER_stalls_suppressed_expected], 1,
                                  memory_order_relaxed);
    } else {
        record(context, lane, LC_ENDED_CALLBACK, epoch, &all, begin, end, thread_cpu_ns());
    }
    if (in_turn) {
        leave_behind(lane, end);
    }
}

void lc_lane_callback_was_long(const lc_lane_context *context, lc_lane *lane, uint64_t end,
                               uint64_t longest_before)
{
    const uint64_t begin = LC_LOAD(lane->begin);
    if (end <= begin) {
        return;
    }
    /* Before the stall is told: its reader finds here what was before it. */
    lc_long_work_add_callback(context, lane, begin, end);
    if (end - begin > LC_LOAD(lane->threshold)) {
        callback_stalled(context, lane, begin, end, longest_before);
    }
}

/* To a sum of 128 bits in two words. */
static void add_wide(lc_word *high, lc_word *low, unsigned __int128 value)
{
    const uint64_t before = LC_LOAD(*low);
    const uint64_t sum = before + (uint64_t)value;
    LC_STORE(*low, sum);
    LC_ADD(*high, (uint64_t)(value >> 64) + (sum < before ? 1u : 0u));
}

void lc_lane_add_callback_squares(lc_lane *lane, unsigned __int128 ticks2)
{
    add_wide(&lane->callback_ticks2_high, &lane->callback_ticks2_low, ticks2);
}

uint64_t lc_congested_slices(uint64_t opened_ns, uint64_t begin_ns, uint64_t end_ns)
{
    const uint64_t from_ns = begin_ns + LC_SLICE_NS;
    if (begin_ns < opened_ns || end_ns <= from_ns) {
        return 0;
    }
    return (end_ns - 1u - opened_ns) / LC_SLICE_NS - (from_ns - opened_ns) / LC_SLICE_NS + 1u;
}

static void add_to_totals(const lc_lane_context *context, lc_lane *lane, uint64_t ticks)
{
    const uint64_t ns = lc_ticks_to_ns(ticks, LC_LOAD(context->header->tick_ns_q32));
    add_wide(&lane->busy_ns2_high, &lane->busy_ns2_low, (unsigned __int128)ns * ns);
    lc_lane_add_callback_squares(lane, LC_LOAD(lane->turn_callback_ticks2));
    LC_ADD(lane->busy_ticks, ticks);
    LC_ADD(lane->callback_ticks, LC_LOAD(lane->turn_callback_ticks));
    LC_ADD(lane->callbacks, LC_LOAD(lane->turn_callbacks));
    if (__builtin_expect(ns > LC_SLICE_NS, 0)) {
        /* Such a turn is long over the time of a clock reading: the wall of the slices is the monotonic
         * clock's. */
        const uint64_t now_ns = lc_now_ns();
        const uint64_t slices =
            lc_congested_slices(LC_LOAD(lane->opened_ns), now_ns > ns ? now_ns - ns : 0u, now_ns);
        LC_ADD(lane->slices_congested, slices);
    }
    LC_ADD(lane->turns, 1u);
    if (ticks > LC_LOAD(lane->longest_turn)) {
        LC_STORE(lane->longest_turn, ticks);
    }
    const uint32_t bucket = lc_histogram_bucket(ns);
    LC_ADD(lane->turn_histogram[bucket], 1u);
}

void lc_lane_turn_over(const lc_lane_context *context, lc_lane *lane, uint64_t end)
{
    const uint64_t begin = LC_LOAD(lane->turn_begin);
    const uint64_t took = end > begin ? end - begin : 0u;
    if (__builtin_expect(took > LC_LOAD(lane->long_limit), 0)) {
        const lc_callbacks all = callbacks_of(lane);
        rest_ended(context, lane, &all, end, true);
    }
    add_to_totals(context, lane, took);
    LC_RELEASE(lane->turn_epoch, LC_LOAD(lane->turn_epoch) + 1u);
}
