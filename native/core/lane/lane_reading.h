/* What the watchdog knows of a thread from before a stall: its schedstat at earlier looks.
 *
 * A stall is seen when it has lasted for a while; the counters at its begin are those of the last reading
 * before. So the watchdog reads them at each look at an active lane, through a descriptor that stays open
 * (0.5 to 1.5 us), and keeps those that may still be asked for. The watchdog's thread, but for
 * lc_lane_note_sched.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/host/kept_file.h"
#include "core/lane/lane.h"
#include "core/host/proc_text.h"

typedef struct {
    uint64_t at_ns; /* 0: none */
    lc_schedstat_fields sched;
} lc_lane_reading;

/* The last one of all; the last one before the running turn and before the running callback began. */
typedef struct {
    uint64_t tid;
    lc_kept_file file;
    lc_lane_reading latest;
    lc_lane_reading before_turn;
    lc_lane_reading before_callback;
} lc_lane_readings;

enum { LC_LANES_READ = 16 }; /* each costs a descriptor and a read at each look */

/* Reads the thread `tid` now. `turn_begin_ns`, `callback_begin_ns`: of what runs, 0 nothing. Opens the
 * file where it is not open. False: it cannot be read. */
bool lc_lane_readings_take(lc_lane_readings *readings, uint64_t tid, uint64_t turn_begin_ns,
                           uint64_t callback_begin_ns);

/* The last reading at or before `begin_ns`; NULL: none is known. One that was taken within a millisecond
 * after it, by a watchdog that the begin itself woke, counts as the begin. */
const lc_lane_reading *lc_lane_readings_before(const lc_lane_readings *readings, uint64_t begin_ns);

/* Gives the descriptor back; what was read stays. */
void lc_lane_readings_close(lc_lane_readings *readings);

/* Reads the lane's own thread, once, into its on_cpu_ns and run_queue_ns. Opens and closes a file; any
 * thread. */
void lc_lane_note_sched(lc_lane *lane);
