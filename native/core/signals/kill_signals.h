/* Signals with which supervisors end programs, and faults of the program itself, as they come: who sent
 * which, into the flight file; and in a stall, or of the turn that a fault comes in, the watchdog's
 * evidence of all threads, for which the handler waits a moment. It needs neither the GIL nor the thread
 * that hangs. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/flight/flight_format.h"
#include "core/watchdog/watch_state.h"

/* From now on these signals (a bit each, see disposition.h) are noted; `caller` as there. One watchdog at
 * a time. */
void lc_kill_signals_begin(lc_watchdog *watchdog, uint64_t signals, const void *caller);
/* Waits for handlers that hold a signal back. False: one is still at work, so that the flight file's pages
 * have to stay. */
bool lc_kill_signals_end(void);
void lc_kill_signals_leave(void);

/* The watchdog's part: names senders, reads threads, and lets handlers go on. Its own thread. */
void lc_kill_signals_look(lc_watchdog *watchdog);
/* When that wants to look again, though nothing works; LC_NO_DEADLINE: only when a signal has come. */
uint64_t lc_kill_signals_due(uint64_t now_ns);
