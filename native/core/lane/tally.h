/* The tally: callbacks of one turn by what they are, for turns that are long though no callback is.
 *
 * The watchdog asks for it (lane->tally) when a turn is busy beyond the sample delay. From then on the
 * program thread adds each callback that begins in this turn to a small table in its lane; before, and in all
 * other turns, that costs one comparison. Nothing is allocated; what finds no entry is counted as dropped.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/flight/flight.h"
#include "core/lane/lane.h"
#include "core/flight/slot_writer.h"

/* Whether callbacks that begin now shall be tallied. Program thread, inside a turn. */
static inline bool lc_tally_is_on(const lc_lane *lane)
{
    return LC_LOAD(lane->tally) == LC_LOAD(lane->turn_epoch);
}

/* A callback of this kind is over, which was scheduled at `site` (lc_site_of); it began at the tick
 * `begin`. Program thread, in the turn of the callback. */
void lc_tally_add(lc_lane *lane, lc_work_kind kind, uint64_t site, uint64_t begin, uint64_t ticks);

/* Asks for a tally of the turn `turn_epoch`, which may be yet to come. Watchdog. */
void lc_tally_ask(lc_lane *lane, uint64_t turn_epoch);

/* Brings the slot's contributors up to date, if the lane's tally is of the slot's turn. Reads the names of
 * the kinds that are new, while they are alive. Watchdog. */
void lc_tally_copy(lc_slot_writer *writer, const lc_lane *lane, const lc_flight *flight, lc_instant now,
                   lc_frame_source *source);
