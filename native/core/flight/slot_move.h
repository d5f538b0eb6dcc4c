/* A stall goes on in another slot, where there is room for what comes. */
#pragma once

#include <stdint.h>

#include "core/flight/slot_writer.h"

/* Where in the new slot is what was at each multiple of 8 bytes in the old one; 0: it has not been moved. */
typedef struct {
    uint32_t places[LC_SLOT_BYTES / 8u];
} lc_moved;

/* Copies the stall of `from` into the FREE slot of `to`, which is cleared first: all of it but samples, of
 * which it keeps one in `one_of`, and what only the others referred to. The old slot stays as it is, and
 * the new one FREE, so that a reader, or a kill at any instruction, finds the stall whole. The watchdog's
 * thread; `moved` is scratch. */
void lc_slot_move(lc_slot_writer *to, const lc_slot_writer *from, uint64_t one_of, lc_moved *moved);
