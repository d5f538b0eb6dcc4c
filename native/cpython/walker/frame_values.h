/* Values of a frame: locals and value stack, and which part of it is in use. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cpython/walker/chain.h"
#include "cpython/source/cpython_source.h"

#define LC_FRAME_SLOTS_MAX 192u

typedef struct {
    uint64_t exceptions; /* address of the table, a bytes object */
    uint64_t filename;   /* addresses of str objects */
    uint64_t qualname;
    uint32_t locals; /* slots before the value stack */
    uint32_t stack;  /* slots of the value stack */
} lc_frame_shape;

/* Reads the frame at the address: its code and instruction; false: not readable. */
bool lc_frame_read(const lc_cpython_source *source, uint64_t address, lc_raw_frame *frame);

/* False if there is no code object, or none that is plausible. */
bool lc_frame_shape_read(const lc_cpython_source *source, const lc_raw_frame *frame, lc_frame_shape *shape);

/* Reads slots [first, first + count), tag bits taken off. False: not readable, or more than
 * LC_FRAME_SLOTS_MAX. */
bool lc_frame_slots_read(const lc_cpython_source *source, const lc_raw_frame *frame, uint32_t first,
                         uint32_t count, uint64_t *slots);

#define LC_EXCEPTION_TABLE_MAX 4096u

/* Depth of the value stack that the innermost handler around code unit `unit` keeps, by the code object's
 * exception table; 0: no handler, or the bytes are no table. What lies below that depth is in use, whatever
 * else the frame's memory holds: so the open `with` blocks of a running frame are told from closed ones.
 * Pure. */
uint32_t lc_exception_depth(const uint8_t *table, uint32_t bytes, uint32_t unit);

/* How many slots of the value stack are surely in use at the frame's instruction: those under its handler. */
uint32_t lc_frame_stack_kept(const lc_cpython_source *source, const lc_raw_frame *frame,
                             const lc_frame_shape *shape);

/* How many are in use by the frame's own word, for versions whose frames keep a pointer while they call; 0
 * none. */
uint32_t lc_frame_stack_used(const lc_cpython_source *source, const lc_raw_frame *frame,
                             const lc_frame_shape *shape);

/* The thread's frames, read into the walker's scratch, at most `limit` that are no shims; NULL if there is
 * none or it moved. Valid until the next walk or chain. */
const lc_chain *lc_chain_of_thread(lc_cpython_source *source, uint64_t thread_state, uint32_t limit);

/* Whether the str at the address is this text, ends in it. */
bool lc_str_is(const lc_cpython_source *source, uint64_t address, const char *text);
bool lc_str_ends(const lc_cpython_source *source, uint64_t address, const char *end);

/* Whether this frame runs the function of importlib's bootstrap with this qualified name. */
bool lc_is_bootstrap(const lc_cpython_source *source, const lc_frame_shape *shape, const char *qualname);
