/* The watchdog: a native thread that looks at the lanes, samples what is busy for too long, and completes
 * what has ended. It never takes the GIL, never allocates after its start, and blocks the program's signals.
 *
 * It ticks only while a lane is active. When all lanes have been idle for a second it parks: it sleeps
 * without a deadline, and the next begin wakes it (lane.h).
 */
#pragma once

#include <stdint.h>

#include "core/watchdog/watch_state.h"

/* The tick: the longest that work may have run when it is first seen. A program that is never idle wakes
 * the watchdog once in a tick; so the default sample delay, a fifth of the threshold, is not also the
 * tick. A shorter delay was asked for, and is. */
static inline uint64_t lc_watchdog_tick_ns(uint64_t threshold_ns, uint64_t sample_delay_ns)
{
    const uint64_t latest_ns = threshold_ns / 20u * 7u;
    return sample_delay_ns >= threshold_ns / 5u && sample_delay_ns < latest_ns ? latest_ns : sample_delay_ns;
}

/* Sets memory aside (one mapping, touched as used). `checkpoint_path`: NULL for no copies on disk.
 * 0 or an errno. */
int lc_watchdog_open(lc_watchdog *watchdog, lc_flight *flight, lc_frame_source *source,
                     const lc_watchdog_settings *settings, const char *checkpoint_path);

/* Starts the thread, if it does not run; one that was asked to stop and has not yet stopped goes on. 0 or
 * an errno. */
int lc_watchdog_start(lc_watchdog *watchdog);
/* It stops after a last look that completes what has ended; lc_life_stops_by waits for that. A disk that
 * does not answer a checkpoint holds it up for as long. */
void lc_watchdog_ask_to_stop(lc_watchdog *watchdog);
/* Once its life is over. */
void lc_watchdog_close(lc_watchdog *watchdog);

/* One look at all lanes at time `now`; answers when it wants to look again (LC_NO_DEADLINE: all lanes have
 * been idle long enough to park). The thread's loop is this and a sleep; tests drive it by hand. */
uint64_t lc_watchdog_look(lc_watchdog *watchdog, uint64_t now_ns);
