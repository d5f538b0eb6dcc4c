/* The flight file's slots as the watchdog uses them: one is opened for a lane that is busy for too long,
 * and completed or let go of when its turn is over. The watchdog's thread. */
#pragma once

#include "core/watchdog/watch_state.h"

/* A lane's limit of so many ticks, in nanoseconds. */
uint64_t lc_stall_limit_ns(const lc_watchdog *w, uint64_t ticks);

/* A free slot, with what is known of the lane; NULL: all are in use. It is not yet LC_SLOT_OPEN. */
lc_slot *lc_stall_slot_open(lc_watchdog *w, uint64_t index, const lc_lane *lane, lc_lane_watch *watch);
void lc_stall_slot_release(lc_lane_watch *watch);

/* Sees that the slot's heap has room for `bytes` more: where it has not, the stall goes on in another
 * slot, mostly with half of the samples and from now on twice the time between them. Else what a long
 * stall does last would not be seen. */
void lc_stall_slot_make_room(lc_watchdog *w, lc_lane_watch *watch, uint64_t bytes);

/* The names of the work must be read again. */
void lc_stall_slot_forget_names(lc_slot *slot);
/* The thread's counters from before the stall. */
void lc_stall_slot_put_before(lc_slot *slot, const lc_lane_watch *watch, uint64_t begin_ns);

/* Completes the slots of the stalls that the lane says have ended. */
void lc_stall_slot_take_ended(lc_watchdog *w, uint64_t index, lc_lane *lane, lc_lane_watch *watch);
