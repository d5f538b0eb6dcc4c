/* When the host is looked at for a stall: as its slot is opened, every second of a long stall, and at its end. */
#ifndef LOOPCANARY_HOST_WATCH_H
#define LOOPCANARY_HOST_WATCH_H

#include "core/host/host_view.h"
#include "core/flight/slot_writer.h"

/* The stall goes on: takes the first reading, or the next one where it is due. The first may be an earlier one that is no
 * more than a tenth of a second old: a program whose callbacks are all a little long opens slots all the time. */
void lc_host_watch_during(lc_host_view *view, lc_slot_writer *writer, uint64_t now_ns);

/* The stall, which began at `begin_ns`, is over. */
void lc_host_watch_at_end(lc_host_view *view, lc_slot_writer *writer, uint64_t begin_ns);

#endif
