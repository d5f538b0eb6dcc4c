/* Copies of ranges of the program's memory, taken together as far as possible, and looked up
 * by the address they came from.
 *
 * A walk follows pointers, so the naive way is a system call a frame. But a stalled thread has nearly
 * the stack that it had at the last sample: what the last walk touched is the plan of the next
 * one, read in one vectored call; only what differs is then read by itself. What such a call costs is
 * mostly the number of its ranges (0.08 us each, a page of copying 0.1 us; 0.3 us each where
 * process_vm_writev is refused): objects that share a page share a range.
 *
 * The first ranges of a plan are read by a call of their own, within a microsecond: those that lead to the
 * innermost frame, and the quick ones, each of them twice in a row and once at the end.
 *
 * Working memory of one thread; no allocation. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/memory/memory_reader.h"

#define LC_PLAN_RANGES_MAX 1024u
#define LC_SNAPSHOT_BYTES (512u * 1024u)
#define LC_PAGE_SLOTS 1024u /* a power of two */
#define LC_QUICK_RANGES 6u
#define LC_QUICK_COPIES 3u
#define LC_KEPT_RANGES 4u
#define LC_TOP_RANGES (LC_KEPT_RANGES + 1u)

typedef struct {
    uint64_t address;
    uint32_t bytes;
    uint32_t at; /* in the snapshot's data; unused in a plan */
} lc_range;

/* What a thread comes back to is wanted again, also where the latest reading did not see it there: latest
 * first, 0 bytes: none. */
typedef struct {
    lc_range ranges[LC_KEPT_RANGES];
} lc_kept_ranges;

typedef struct {
    uint32_t count;
    uint32_t tops;   /* ranges, the first ones, that lead to the innermost frame */
    uint32_t frames; /* ranges behind them that hold frames: the first ones are the quick ones */
    lc_range ranges[LC_PLAN_RANGES_MAX];
    lc_kept_ranges kept_tops; /* these two are not cleared with the plan */
    lc_kept_ranges kept_frames;
    uint16_t object_slots[LC_PAGE_SLOTS]; /* by page: range + 1; only while the plan is made */
} lc_read_plan;

typedef struct {
    const lc_memory_reader *reader;
    uint32_t count;
    uint32_t used;
    uint32_t cursor; /* lookups mostly go in the order of the plan */
    uint32_t tops;   /* ranges, the first ones, that were copied right before the quick ones; 0: none were */
    uint32_t quick;  /* ranges behind them of which there are LC_QUICK_COPIES */
    uint32_t later;  /* how far behind each copy the next one is */
    uint64_t proven_str; /* address of the str that was last compared with its print, and was equal; 0 none */
    uint64_t proven_str_hash;
    lc_range ranges[LC_PLAN_RANGES_MAX];
    uint16_t slots[LC_PAGE_SLOTS]; /* by the page that a range begins in: range + 1 */
    uint8_t data[LC_SNAPSHOT_BYTES];
} lc_snapshot;

static inline void lc_read_plan_clear(lc_read_plan *plan)
{
    plan->count = 0;
    plan->tops = 0;
    plan->frames = 0;
    memset(plan->object_slots, 0, sizeof plan->object_slots);
}

/* Adds a range that the next walk will probably want; merges neighbours. A full plan
 * forgets; no plan (NULL) may be given. */
void lc_read_plan_add(lc_read_plan *plan, uint64_t address, uint32_t bytes);

/* The same for an object, of at most a page, whose place in the order does not matter: joins the range of
 * its page. */
void lc_read_plan_add_object(lc_read_plan *plan, uint64_t address, uint32_t bytes);

/* A range that leads to the innermost frame; before all others. */
void lc_read_plan_add_top(lc_read_plan *plan, uint64_t address, uint32_t bytes);

void lc_keep_range(lc_kept_ranges *kept, uint64_t address, uint32_t bytes);

/* Starts again with copies of the plan's ranges; those that cannot be read are left out. */
void lc_snapshot_take(lc_snapshot *snapshot, const lc_memory_reader *reader, const lc_read_plan *plan);

/* The copy of [address, address + bytes); read now if the snapshot has it not yet. NULL: unreadable, or
 * no room. Valid until the next take. Not aligned: use lc_word_at and its like. */
const uint8_t *lc_snapshot_get(lc_snapshot *snapshot, uint64_t address, uint32_t bytes);

/* The same, but what is not there yet is read from the start of its page: callers' frames lie right
 * below on the data stack. */
const uint8_t *lc_snapshot_get_frame(lc_snapshot *snapshot, uint64_t address, uint32_t bytes);

/* Whether the range was copied right before the quick ones. */
bool lc_snapshot_is_top(const lc_snapshot *snapshot, uint64_t address, uint32_t bytes);

/* Which of the quick ranges it lies in, by address, and its copies; -1: in none. */
int32_t lc_snapshot_quick(const lc_snapshot *snapshot, uint64_t address, uint32_t bytes,
                          const uint8_t *copies[LC_QUICK_COPIES]);

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
