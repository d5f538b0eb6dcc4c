/* The calls of one thread, noted in a file that outlives the process (calls_format.h).
 *
 * One writer at a time: the thread itself. No lock, no allocation, no system call in enter and leave.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/statvfs.h>

#include "core/clock/clock.h"
#include "core/methods/calls_format.h"

typedef struct {
    lc_calls_header *header; /* NULL: none */
    lc_open_call *open;
    lc_slow_call *slow;
    uint64_t *marks;
    uint64_t *words;
    uint64_t mask;
    uint64_t written, depth, base_ticks, us_q64; /* as in the header: read without a look at shared memory */
    int64_t slow_us;                             /* a call of this length is slow; INT64_MAX: none is */
    uint64_t told_us; /* when the slow call that was noted last had begun, plus 1 */
    size_t bytes;
} lc_calls;

/* How many bytes of a folder one ring may have: of it this user's rings, of which the `others` have so
 * many bytes there, take at most a quarter, and half of what is free (lc_room). `made`: the ring has so
 * many already. UINT64_MAX: any. */
uint64_t lc_calls_room(const struct statvfs *folder, uint64_t others, uint64_t made);

/* Makes the file (must not exist; a path with a folder, as `/dev/shm/1.flight.calls-0`; mode 0600) with
 * room for so many words, a power of two, or where there is no room for them (lc_calls_room,
 * lc_spare_addresses) for half as many, and so on. Its blocks are set aside: a full device is an error
 * here and no SIGBUS later. 0, or an errno. Reads the folder; allocates. `rate_q32`: nanoseconds a tick,
 * times 2^32. */
int lc_calls_create(lc_calls *calls, const char *path, uint64_t words, uint64_t rate_q32);

/* From here on they are the calling thread's; what was noted before is gone. */
void lc_calls_begin(lc_calls *calls, uint64_t tid);

/* The thread has ended; what it noted can be read. */
void lc_calls_end(lc_calls *calls);

/* In a forked child: memory of no meaning takes the place of the parent's file, until the close. */
void lc_calls_let_go(const lc_calls *calls);

/* Unmaps the file, which stays. Idempotent. */
void lc_calls_close(lc_calls *calls);

void lc_calls_enter(lc_calls *calls, uint32_t id);

/* The innermost call of this code ends, or pauses; those inside it end with it. One that is not open is
 * none. Whether it was slow; then lc_calls_note_slow notes it. */
bool lc_calls_leave(lc_calls *calls, uint32_t id);

/* Of the call that has just ended: whether a turn or a callback that began at these ticks began inside it. */
bool lc_calls_has_begun_in_last(const lc_calls *calls, uint64_t ticks);

/* Notes the call that has just ended, and was slow. False: one inside it was noted, and says more of where
 * the time went. */
bool lc_calls_note_slow(lc_calls *calls);

/* The calls from here on, until the next such note, belong to this work (LC_CALLS_WORK). */
void lc_calls_begin_work(lc_calls *calls, uint32_t number);

/* ---- the short ways, which call nothing ------------------------------------------------------ */

static inline uint64_t lc_calls_us(const lc_calls *calls, uint64_t ticks)
{
    return (uint64_t)(((unsigned __int128)(ticks - calls->base_ticks) * calls->us_q64) >> 64);
}

static inline void lc_calls_put(lc_calls *calls, uint64_t word, uint64_t us)
{
    const uint64_t number = calls->written;
    if (__builtin_expect(number % LC_CALLS_MARK_WORDS == 0, 0)) {
        calls->marks[number / LC_CALLS_MARK_WORDS % LC_CALLS_MARKS] = us;
    }
    __atomic_store_n(&calls->words[number & calls->mask], word, __ATOMIC_RELAXED);
    calls->written = number + 1u;
    atomic_store_explicit(&calls->header->written, number + 1u, memory_order_release);
}

static inline void lc_calls_set_depth(lc_calls *calls, uint64_t depth)
{
    calls->depth = depth;
    atomic_store_explicit(&calls->header->depth, depth, memory_order_release);
}

static inline void lc_calls_enter_at(lc_calls *calls, uint32_t id, uint64_t us)
{
    if (__builtin_expect(calls->depth < LC_CALLS_OPEN_MAX, 1)) {
        calls->open[calls->depth] = (lc_open_call){id, us};
    }
    lc_calls_put(calls, LC_CALLS_IN | (uint64_t)id << LC_CALLS_TIME_BITS | (us & LC_CALLS_TIME_MASK), us);
    lc_calls_set_depth(calls, calls->depth + 1u);
}

static inline void lc_calls_leave_at(lc_calls *calls, uint32_t id, uint64_t us)
{
    lc_calls_put(calls, (uint64_t)id << LC_CALLS_TIME_BITS | (us & LC_CALLS_TIME_MASK), us);
}

/* Whether the call that has just ended at this time was slow. A counter may step back. */
static inline bool lc_calls_was_slow(const lc_calls *calls, uint64_t us)
{
    return __builtin_expect((int64_t)(us - calls->open[calls->depth].us) >= calls->slow_us, 0);
}

static inline bool lc_calls_is_innermost(const lc_calls *calls, uint32_t id)
{
    const uint64_t top = calls->depth - 1u;
    return __builtin_expect(top < LC_CALLS_OPEN_MAX && calls->open[top].id == id, 1);
}

static inline void lc_calls_enter_soon(lc_calls *calls, uint32_t id)
{
    if (lc_counter_is_used()) {
        lc_calls_enter_at(calls, id, lc_calls_us(calls, lc_counter_ticks()));
    } else {
        lc_calls_enter(calls, id);
    }
}

static inline bool lc_calls_can_leave_soon(const lc_calls *calls, uint32_t id)
{
    return lc_counter_is_used() && lc_calls_is_innermost(calls, id);
}

static inline bool lc_calls_leave_soon(lc_calls *calls, uint32_t id)
{
    const uint64_t us = lc_calls_us(calls, lc_counter_ticks());
    lc_calls_set_depth(calls, calls->depth - 1u);
    lc_calls_leave_at(calls, id, us);
    return lc_calls_was_slow(calls, us);
}
