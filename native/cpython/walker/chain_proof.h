/* How far two readings of a chain agree, and which frames they prove; docs/internals/walker.md has
 * the argument. */
#pragma once

#include "cpython/walker/chain.h"

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
