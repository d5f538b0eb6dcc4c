/* What the watchdog does with one lane at one look: the stall's life from its first sample to its end. */
#pragma once

#include "core/watchdog/watch_state.h"

/* Looks at lane `index`; answers when it wants to look again, LC_NO_DEADLINE where the lane has been idle
 * long enough for the watchdog to park. */
uint64_t lc_stall_watch_look(lc_watchdog *watchdog, uint64_t index, uint64_t now_ns);

/* The stacks of all threads into the lane's stall, if it has one (LC_WATCH_FAULT: into that of a fault in
 * no turn); not where they were read half a second ago. */
void lc_stall_watch_take_threads(lc_watchdog *watchdog, uint64_t index);

/* This thread has caused a fault, and may be about to die: the turn that it is in is a stall from now on,
 * with a sample. If it is in no turn, a slot of its own has what it did, for the last such thread only. */
void lc_stall_watch_take_fault(lc_watchdog *watchdog, uint64_t tid, uint64_t at_ns);

/* A thread that is in no turn, as if it were in one since `begin_ns`: a slot of its own, or what there is since
 * the last look, at an index beyond the lanes. The judge may still find that there is nothing to be said. */
void lc_stall_watch_outside(lc_watchdog *watchdog, uint64_t index, lc_ended_kind kind, uint64_t tid,
                            uint64_t begin_ns, uint64_t now_ns);

void lc_stall_watch_close_view(lc_watchdog *watchdog, uint64_t index);
void lc_stall_watch_close_readings(lc_watchdog *watchdog, uint64_t index);
