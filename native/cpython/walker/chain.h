/* A thread's chain of frames as it lies in memory, and how far two readings of it agree. */
#ifndef LOOPCANARY_CHAIN_H
#define LOOPCANARY_CHAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "core/flight/flight_format.h"
#include "cpython/layouts/layout.h"
#include "cpython/walker/snapshot.h"

/* Every call from C into Python adds a shim to the chain from 3.12 on, and frames may be incomplete:
 * room for both beside as many frames as are ever shown. */
#define LC_CHAIN_MAX (3u * LC_STACK_FRAMES_MAX)

typedef struct {
    uint64_t address;
    uint64_t previous;
    uint64_t code; /* without tag bits; of a shim: whatever it holds */
    uint64_t instr;
    uint64_t stack; /* where the frame's value stack was when it last called: part of its identity */
    uint32_t owner;
    bool shim;
} lc_raw_frame;

typedef struct {
    uint32_t count;
    bool cut;   /* there are more outside */
    bool moved; /* the thread had another innermost frame when the last of these had been read */
    lc_raw_frame frames[LC_CHAIN_MAX]; /* innermost first */
} lc_chain;

typedef enum {
    LC_CHAIN_OK = 0,
    LC_CHAIN_BROKEN = 1,    /* something is not what it must be: moved under the reader, or no thread */
    LC_CHAIN_UNREADABLE = 2 /* an address in it cannot be read */
} lc_chain_result;

/* Follows the chain of a thread state through the snapshot, at most `limit` frames that are no
 * shims, and adds what it touched to `plan`. */
lc_chain_result lc_chain_follow(lc_snapshot *snapshot, const lc_layout *layout,
                                uint64_t thread_state, uint32_t limit, lc_chain *chain,
                                lc_read_plan *plan);

/* Indices of the innermost frames from which on outwards two readings agree. */
typedef struct {
    bool any;
    uint32_t in_first;
    uint32_t in_second;
} lc_agreement;

/* Frames agree if all their words do; the innermost one that agrees may be at different
 * instructions, since it may be running. Of a chain that moved while it was read, the innermost frame counts for
 * nothing: it may have ended before its words were copied. */
lc_agreement lc_chains_agree(const lc_chain *first, const lc_chain *second);

/* Whether every word is the same, the innermost frame's included. */
bool lc_chains_equal(const lc_chain *first, const lc_chain *second);

#endif
