/* A copy of a hang's evidence on disk.
 *
 * The flight file lies in memory, where a killed process leaves it; a container that is restarted loses it
 * with its /dev/shm. So when a stall becomes a hang, and at each doubling from then on, the watchdog
 * writes the parts that describe it to a file in the store: the same format, the same offsets, all else
 * holes. The watchdog may block in these writes; the program's threads never come here.
 */
#pragma once

#include <limits.h>
#include <stdint.h>

#include "core/flight/flight.h"
#include "core/watchdog/futex.h"

typedef struct {
    char path[PATH_MAX]; /* empty: no checkpoints */
    const lc_bell *life; /* of the thread that writes */
    lc_kept_file file;   /* from the first one on; locked (flock) as long as the process lives */
} lc_checkpoint;

void lc_checkpoint_open(lc_checkpoint *checkpoint, const char *path, const lc_bell *life);
void lc_checkpoint_close(lc_checkpoint *checkpoint);

/* Writes header, facts, counters, collections, one lane and one slot. Counts success or failure. False: it
 * was given up, as the thread is to stop. */
bool lc_checkpoint_write(lc_checkpoint *checkpoint, const lc_flight *flight, uint64_t lane,
                         const lc_slot *slot);
