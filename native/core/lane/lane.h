/* Lanes: what the program thread does, in a few plain stores.
 *
 * All functions here run on the thread that owns the lane and on no other, in any state of the GIL; none
 * locks, allocates or waits. A begin and an end cost a tick reading and a handful of stores each, and
 * system calls only where the watchdog has parked (first begin after idleness), or where what ends was long
 * (long_work.h) or a stall.
 *
 * Order, for those who look on from other threads:
 *   - `begin` is stored (release) before `epoch` turns odd (release). A reader that loads epoch, begin,
 *     epoch (acquire) and finds the same odd epoch twice has the begin of that very callback; the
 *     release on `begin` keeps it from passing the preceding even epoch.
 *   - the same for turn_begin and turn_epoch.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "core/clock/clock.h"
#include "core/flight/flight_format.h"
#include "core/watchdog/frame_source.h"
#include "core/watchdog/futex.h"

/* What a lane needs of the engine to do its work; shared by all lanes, fixed while lanes are active. */
typedef struct {
    lc_header *header;
    lc_word *counters;
    lc_bell *watchdog_bell;
    /* The watchdog makes its store to `parked` visible everywhere by membarrier(2), so that a begin
     * needs no fence of its own; where the kernel lacks it, the begin fences. */
    bool begin_must_fence;
    lc_frame_source *source; /* for the names of long work */
} lc_lane_context;

/* Slow paths, out of line. */
void lc_lane_wake_watchdog(const lc_lane_context *context);
/* `longest_before`: ticks of the longest callback since the turn's begin, or since its last that was judged
 * alone. */
void lc_lane_callback_was_long(const lc_lane_context *context, lc_lane *lane, uint64_t end,
                               uint64_t longest_before);
void lc_lane_turn_over(const lc_lane_context *context, lc_lane *lane, uint64_t end);

void lc_lane_add_callback_squares(lc_lane *lane, unsigned __int128 ticks2);

#define LC_LOAD(word) atomic_load_explicit(&(word), memory_order_relaxed)
#define LC_STORE(word, value) atomic_store_explicit(&(word), (value), memory_order_relaxed)
#define LC_RELEASE(word, value) atomic_store_explicit(&(word), (value), memory_order_release)
#define LC_ACQUIRE(word) atomic_load_explicit(&(word), memory_order_acquire)
/* For words with one writer: an increment without the bus lock of fetch_add. */
#define LC_ADD(word, value) LC_STORE(word, LC_LOAD(word) + (value))

/* The lane's life is cut into slices of this length from its opening on. A turn congests every slice that
 * it is busy in after its own first LC_SLICE_NS: what arrives there has waited that long already, or will
 * have. (The rule of Chromium's Browser.MainThreadsCongestion, for turns in the place of tasks.) Two turns
 * never congest the same slice: the second one's part begins a slice's length after the first one's end.
 * Pure. */
#define LC_SLICE_NS UINT64_C(100000000)
uint64_t lc_congested_slices(uint64_t opened_ns, uint64_t begin_ns, uint64_t end_ns);

/* Whether the lane may be given out again: its thread is gone, and the watchdog has copied what that
 * recorded, with its names. */
static inline bool lc_lane_is_done(const lc_lane *lane)
{
    return LC_ACQUIRE(lane->state) == LC_LANE_CLOSED &&
           LC_ACQUIRE(lane->ended_seen) == LC_LOAD(lane->ended_count);
}

static inline bool lc_lane_in_turn(const lc_lane *lane) { return LC_LOAD(lane->turn_epoch) & 1u; }
static inline bool lc_lane_in_callback(const lc_lane *lane) { return LC_LOAD(lane->epoch) & 1u; }

/* The wait is over: the loop works. No-op inside a turn. */
static inline void lc_turn_begin(const lc_lane_context *context, lc_lane *lane)
{
    const uint64_t epoch = LC_LOAD(lane->turn_epoch);
    if (epoch & 1u) {
        return;
    }
    LC_RELEASE(lane->turn_begin, lc_now_ticks());
    LC_STORE(lane->turn_callbacks, 0);
    LC_STORE(lane->turn_callback_ticks, 0);
    LC_STORE(lane->turn_callback_ticks2, 0);
    LC_STORE(lane->turn_longest, 0);
    LC_RELEASE(lane->turn_rest, 0);
    LC_RELEASE(lane->turn_epoch, epoch + 1u);
    if (__builtin_expect(context->begin_must_fence, 0)) {
        atomic_thread_fence(memory_order_seq_cst);
    } else {
        atomic_signal_fence(memory_order_seq_cst);
    }
    if (__builtin_expect(LC_LOAD(context->header->parked) != 0, 0)) {
        lc_lane_wake_watchdog(context);
    }
}

/* The loop is about to wait. No-op outside a turn. */
static inline void lc_turn_end(const lc_lane_context *context, lc_lane *lane)
{
    if (lc_lane_in_turn(lane)) {
        lc_lane_turn_over(context, lane, lc_now_ticks());
    }
}

/* A callback begins, inside a turn. `work` names it to lc_frame_source.work; `due` is the tick at which it
 * could have begun, 0 for "when its turn began". */
static inline void lc_callback_begin(lc_lane *lane, uint64_t work, uint64_t due)
{
    const uint64_t now = lc_now_ticks();
    const uint64_t since = due ? due : LC_LOAD(lane->turn_begin);
    LC_STORE(lane->queue_ticks, now > since ? now - since : 0u);
    LC_RELEASE(lane->begin, now);
    LC_RELEASE(lane->work, work); /* nor may this pass the preceding even epoch */
    LC_RELEASE(lane->epoch, LC_LOAD(lane->epoch) + 1u);
}

/* Adds the square of one callback's ticks to the turn's sum; beyond 64 bits, to the total at once. */
static inline void lc_lane_add_square(lc_lane *lane, uint64_t took)
{
    uint64_t square, sum;
    if (__builtin_expect(__builtin_mul_overflow(took, took, &square) ||
                             __builtin_add_overflow(LC_LOAD(lane->turn_callback_ticks2), square, &sum),
                         0)) {
        lc_lane_add_callback_squares(lane, (unsigned __int128)took * took);
        return;
    }
    LC_STORE(lane->turn_callback_ticks2, sum);
}

/* Returns how long the callback took, in ticks. */
static inline __attribute__((always_inline)) uint64_t lc_callback_end(const lc_lane_context *context,
                                                                      lc_lane *lane)
{
    const uint64_t now = lc_now_ticks();
    const uint64_t begin = LC_LOAD(lane->begin);
    const uint64_t took = now > begin ? now - begin : 0u; /* a counter may step back (suspend, migration) */
    LC_ADD(lane->turn_callbacks, 1u);
    LC_ADD(lane->turn_callback_ticks, took);
    lc_lane_add_square(lane, took);
    const uint64_t longest = LC_LOAD(lane->turn_longest);
    if (took > longest) {
        LC_STORE(lane->turn_longest, took);
        LC_STORE(lane->turn_longest_epoch, LC_LOAD(lane->epoch));
    }
    const uint64_t queued = LC_LOAD(lane->queue_ticks);
    LC_ADD(lane->queue_ticks_total, queued);
    if (queued > LC_LOAD(lane->queue_ticks_max)) {
        LC_STORE(lane->queue_ticks_max, queued);
    }
    if (__builtin_expect(took > LC_LOAD(lane->long_limit), 0)) { /* which is at most the threshold */
        /* The records come before the even epoch, so that no one finds the callback over and no record. */
        lc_lane_callback_was_long(context, lane, now, longest);
    }
    LC_RELEASE(lane->epoch, LC_LOAD(lane->epoch) + 1u);
    LC_RELEASE(lane->work, 0); /* nor may this pass the even epoch */
    return took;
}

/* Ends the running callback without a judgement: its true end is not known. */
static inline void lc_lane_drop_callback(lc_lane *lane)
{
    const uint64_t epoch = LC_LOAD(lane->epoch);
    if (epoch & 1u) {
        LC_RELEASE(lane->epoch, epoch + 1u);
        LC_RELEASE(lane->work, 0);
    }
}

/* Grants the running callback `ticks` before it is a stall; the largest grant counts. */
static inline void lc_lane_allow(lc_lane *lane, uint64_t ticks)
{
    const uint64_t epoch = LC_LOAD(lane->epoch);
    if (LC_LOAD(lane->allowance_epoch) != epoch || LC_LOAD(lane->allowance) < ticks) {
        LC_STORE(lane->allowance, ticks);
        LC_RELEASE(lane->allowance_epoch, epoch);
    }
}

static inline uint64_t lc_lane_limit(const lc_lane *lane, uint64_t epoch)
{
    const uint64_t threshold = LC_LOAD(lane->threshold);
    if (LC_ACQUIRE(lane->allowance_epoch) != epoch) {
        return threshold;
    }
    const uint64_t allowance = LC_LOAD(lane->allowance);
    return allowance > threshold ? allowance : threshold;
}
