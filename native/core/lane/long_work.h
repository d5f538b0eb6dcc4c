/* Long work: what a lane's thread ran in the seconds before a stall, in a ring behind the lane.
 *
 * A callback that took longer than the lane's limit is recorded when it ends, and a turn if what it did
 * besides its recorded callbacks took longer. What is shorter costs nothing: it is the difference of the
 * lane's sums between two entries. The limit begins at a millisecond and doubles while the ring goes round in
 * less than four seconds, up to half the threshold, so that the ring holds seconds of a busy loop, too; when
 * nothing was recorded for as long, it begins again.
 */
#pragma once

#include "core/flight/flight.h"
#include "core/lane/lane.h"

#define LC_LONG_LEAST_NS UINT64_C(1000000)
#define LC_LONG_ROUND_NS UINT64_C(4000000000)

/* Sets the limit of a lane whose threshold and sums are set. `rate`: lc_header.tick_ns_q32. By the code
 * that gives the lane out. */
void lc_long_work_open(lc_lane *lane, uint64_t rate);

/* The callback of the lane's epoch took from `begin` to `end`, in ticks; it is in the turn's sums already.
 * Program thread; names it, which takes a few system calls. */
void lc_long_work_add_callback(const lc_lane_context *context, lc_lane *lane, uint64_t begin, uint64_t end);

/* Callbacks of a turn, or of a part of it. */
typedef struct {
    uint64_t count;
    uint64_t ticks;
    uint64_t longest;
    uint64_t longest_epoch;
} lc_callbacks;

/* The lane's turn, or the part of it that is left beside callbacks that were judged alone, took from `begin`
 * to `end`, in ticks; it is not in the lane's totals yet. `of`: its callbacks. `always`: even where those of
 * them that were recorded explain it. Program thread. */
void lc_long_work_add_turn(const lc_lane_context *context, lc_lane *lane, const lc_callbacks *of,
                           uint64_t begin, uint64_t end, bool always);

/* Lets the limit begin again if nothing was long enough for it in a while. Watchdog; `now`: ticks. */
void lc_long_work_relax(lc_lane *lane, uint64_t now, uint64_t rate);

static inline lc_long_work *lc_long_work_entry(lc_lane *lane, uint64_t sequence)
{
    lc_long_work *ring = (lc_long_work *)((char *)lane + LC_LONG_WORK_OFFSET);
    return &ring[(sequence - 1u) % LC_LONG_WORK_COUNT];
}
