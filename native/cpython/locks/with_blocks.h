/* Locks in whose `with` block a frame is. */
#ifndef LOOPCANARY_WITH_BLOCKS_H
#define LOOPCANARY_WITH_BLOCKS_H

#include "cpython/walker/frame_values.h"

#define LC_MANAGERS_DEEP 4u /* context managers made of generators, one in the block of the other */

/* Whether the frame is in a `with` block of this lock: its own, or that of a generator which contextlib has made the context
 * manager of one of its blocks.
 *
 * `type`: LC_TYPE_LOCK, LC_TYPE_RLOCK or LC_TYPE_SEMLOCK. */
bool lc_is_in_with(lc_cpython_source *source, const lc_raw_frame *frame, uint64_t lock, int type);

/* The frame of the generator behind a slot of the value stack: contextlib's manager, or its __exit__, bound. False: the slot
 * is nothing of the kind. */
bool lc_manager_frame(lc_cpython_source *source, uint64_t slot, lc_raw_frame *out);

#endif
