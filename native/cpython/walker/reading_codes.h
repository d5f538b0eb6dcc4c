/* Code objects of a reading's frames: found, known from the cache or put there, and proven by what is read
 * later. */
#pragma once

#include "cpython/walker/walker.h"

/* Finds the code object and instruction of every frame, and what is known of the code objects. */
bool lc_reading_find_codes(lc_cpython_source *source, lc_reading *reading);
/* Lines and columns of the frames that are shown. */
void lc_reading_find_positions(lc_cpython_source *source, lc_reading *reading);

/* Keeps of what a reading learned only what `later`, taken after it, proves. True if all is proven. */
bool lc_reading_settle(lc_cpython_source *source, lc_reading *reading, lc_snapshot *later);
/* The same for the last reading of a walk, or one that came to nothing. */
void lc_reading_settle_now(lc_cpython_source *source, lc_reading *reading);

/* The innermost frame, from `from` to `in_both`, from which on outwards all are of trusted code. A frame
 * that only one reading has may have ended since, and its code with it: then words and strings are read of
 * memory that was freed. */
uint32_t lc_reading_trusted_from(lc_cpython_source *source, const lc_reading *reading, uint32_t from,
                                 uint32_t in_both);

/* The same for all frames: the innermost one, from `from` on, from which on outwards no code object has
 * died, where deaths are counted, since the first reading had read its frames. What the second reading's
 * frames ran when they were copied is there until now, then, and what was read of it is its own. Without
 * this, strings can be read twice of an object that is dead, while the next one is made in its memory. */
uint32_t lc_reading_outlived_from(lc_cpython_source *source, const lc_reading *first,
                                  const lc_reading *second, uint32_t from);

/* The reading has been proven, from that frame on outwards: their code objects were there, and were what
 * their entries say. */
void lc_reading_trust(lc_reading *reading, uint32_t from, bool for_sure);

static inline void lc_walk_count(_Atomic uint64_t *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}
