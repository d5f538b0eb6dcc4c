/* Copies of ranges of the program's memory, taken together as far as possible, and looked up
 * by the address they came from.
 *
 * A walk follows pointers, so the naive way is a system call a frame. But a stalled thread has nearly
 * the stack that it had at the last sample: what the last walk touched is the plan of the next
 * one, read in one vectored call; only what differs is then read by itself. What such a call costs is
 * mostly the number of its ranges (0.3 us each, a page of copying 0.1 us): objects that share a page share a range.
 *
 * Working memory of one thread; no allocation. */
#ifndef LOOPCANARY_SNAPSHOT_H
#define LOOPCANARY_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/memory/memory_reader.h"

#define LC_PLAN_RANGES_MAX 1024u
#define LC_SNAPSHOT_BYTES (512u * 1024u)
#define LC_PAGE_SLOTS 1024u /* a power of two */

typedef struct {
    uint64_t address;
    uint32_t bytes;
    uint32_t at; /* in the snapshot's data; unused in a plan */
} lc_range;

typedef struct {
    uint32_t count;
    lc_range ranges[LC_PLAN_RANGES_MAX];
    lc_range last; /* read after all others, 0 bytes: none */
    uint16_t object_slots[LC_PAGE_SLOTS]; /* by page: range + 1; only while the plan is made */
} lc_read_plan;

typedef struct {
    const lc_memory_reader *reader;
    uint32_t count;
    uint32_t used;
    uint32_t cursor; /* lookups mostly go in the order of the plan */
    bool grown;      /* ranges were read since the take */
    uint64_t proven_str; /* address of the str that was last compared with its print, and was equal; 0 none */
    uint64_t proven_str_hash;
    lc_range last;   /* 0 bytes: not read */
    uint8_t last_data[8];
    lc_range ranges[LC_PLAN_RANGES_MAX];
    uint16_t slots[LC_PAGE_SLOTS]; /* by the page that a range begins in: range + 1 */
    uint8_t data[LC_SNAPSHOT_BYTES];
} lc_snapshot;

static inline void lc_read_plan_clear(lc_read_plan *plan)
{
    plan->count = 0;
    plan->last.bytes = 0;
    memset(plan->object_slots, 0, sizeof plan->object_slots);
}

/* Adds a range that the next walk will probably want; merges neighbours. A full plan
 * forgets; no plan (NULL) may be given. */
void lc_read_plan_add(lc_read_plan *plan, uint64_t address, uint32_t bytes);

/* The same for an object, of at most a page, whose place in the order does not matter: joins the range of its page. */
void lc_read_plan_add_object(lc_read_plan *plan, uint64_t address, uint32_t bytes);

/* The range (at most 8 bytes) that is to be read after all others. */
void lc_read_plan_add_last(lc_read_plan *plan, uint64_t address, uint32_t bytes);

/* Starts again with copies of the plan's ranges; those that cannot be read are left out. */
void lc_snapshot_take(lc_snapshot *snapshot, const lc_memory_reader *reader,
                      const lc_read_plan *plan);

/* The copy of [address, address + bytes); read now if the snapshot has it not yet. NULL: unreadable, or
 * no room. Valid until the next take. Not aligned: use lc_word_at and its like. */
const uint8_t *lc_snapshot_get(lc_snapshot *snapshot, uint64_t address, uint32_t bytes);

/* The same, but what is not there yet is read from the start of its page: callers' frames lie right
 * below on the data stack. */
const uint8_t *lc_snapshot_get_frame(lc_snapshot *snapshot, uint64_t address, uint32_t bytes);

/* A copy of the range that is younger than all that the snapshot has so far. */
const uint8_t *lc_snapshot_get_last(lc_snapshot *snapshot, uint64_t address, uint32_t bytes);

static inline uint64_t lc_u64_at(const uint8_t *bytes, uint32_t offset)
{
    uint64_t value;
    memcpy(&value, bytes + offset, sizeof value);
    return value;
}

static inline uint32_t lc_u32_at(const uint8_t *bytes, uint32_t offset)
{
    uint32_t value;
    memcpy(&value, bytes + offset, sizeof value);
    return value;
}

#endif
