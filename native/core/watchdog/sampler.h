/* One sample: a thread's frames, the GIL and the kernel's view of the thread, into the slot. */
#pragma once

#include "core/watchdog/watch_state.h"

/* Opens the files that samples of the lane's thread are read from, where there is room for them. */
void lc_sampler_prepare(lc_watchdog *watchdog, const lc_lane *lane, lc_lane_watch *watch);

/* Reads the lane's thread between two looks at its epoch; what was not of one and the same callback (or of
 * one turn, between callbacks) is dropped and counted. */
void lc_sampler_take(lc_watchdog *watchdog, const lc_lane *lane, lc_lane_watch *watch, uint64_t now_ns);

/* The stacks of all threads, once, for a hang. */
void lc_sampler_take_threads(lc_watchdog *watchdog, const lc_lane *lane, lc_lane_watch *watch);
