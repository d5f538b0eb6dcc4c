/* A thread's chain of frames as it lies in memory. */
#pragma once

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
    bool by_c;     /* 3.11: C code called it; later there is a shim outside of it */
    bool told;     /* the next three are known */
    bool calls;    /* it may be in a call that the interpreter makes without C; 3.11 to 3.13: or have ended */
    bool runs;     /* it may execute, a call of C code included */
    bool alive;    /* it has not ended; 3.11 to 3.13: and runs */
    int32_t quick; /* which quick range it is of; -1: of none */
    bool stood;    /* its second copy is the same */
    bool stood_long; /* so is the third */
    /* the second is of the same code and caller: the first was not copied while a frame was made there */
    bool settled;
    bool ran_on; /* the third is, too, and executes if the first does */
} lc_raw_frame;

typedef struct {
    uint32_t count;
    bool cut;    /* there are more outside */
    bool moved;  /* the thread had another innermost frame when the last of these had been read */
    bool passed; /* frames inside of these had ended by then, and were passed over */
    /* so many, from the innermost one, are of the quick ranges, copied right after the look at which one
     * that is */
    uint32_t quick;
    lc_raw_frame frames[LC_CHAIN_MAX]; /* innermost first */
} lc_chain;

typedef enum {
    LC_CHAIN_OK = 0,
    LC_CHAIN_BROKEN = 1,     /* something is not what it must be: moved under the reader, or no thread */
    LC_CHAIN_UNREADABLE = 2, /* an address in it cannot be read */
    LC_CHAIN_ENDED = 3       /* of a frame: it was given back (told from 3.14 on) */
} lc_chain_result;

/* Follows the chain of a thread state through the snapshot, at most `limit` frames that are no
 * shims, and adds what it touched to `plan`. */
lc_chain_result lc_chain_follow(lc_snapshot *snapshot, const lc_layout *layout, uint64_t thread_state,
                                uint32_t limit, lc_chain *chain, lc_read_plan *plan);

/* ---- chain_proof.c ----------------------------------------------------------------------------------
 * How far two readings of a chain agree, and which frames they prove; docs/internals/walker.md has
 * the argument. */

/* Indices of the innermost frames from which on outwards two readings agree. */
typedef struct {
    bool any;
    bool unmoved; /* the innermost one is at the same instruction in both */
    uint32_t in_first;
    uint32_t in_second;
} lc_agreement;

/* Frames agree if all their words do; the innermost one that agrees may be at different
 * instructions, since it may be running. Of a chain that moved while it was read, the innermost frame
 * counts for nothing: it may have ended before its words were copied. */
lc_agreement lc_chains_agree(const lc_chain *first, const lc_chain *second);

/* The frames of the second of two readings that are proven: `from` and all outside of it. */
typedef struct {
    bool any;
    bool cut;      /* frames inside of `from` are not */
    uint32_t seen; /* the frames from here on outwards were there */
    uint32_t from;
    uint32_t in_both; /* from here on outwards both readings have the frames */
    /* from here on outwards it is the first reading that proves them, inside of it the quick copies */
    uint32_t agreed;
} lc_proof;

/* Frames that both readings have are proven by it; those inside of them by a quick copy in which each
 * caller is seen to be in the call: docs/internals/walker.md, "Frames that come and go". */
lc_proof lc_chains_prove(const lc_chain *first, const lc_chain *second);

/* Whether every word is the same, the innermost frame's included. */
bool lc_chains_equal(const lc_chain *first, const lc_chain *second);
