/* Sleeping and waking on a 32-bit word, with absolute deadlines of the monotonic clock. */
#pragma once

#include <errno.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

typedef _Atomic uint32_t lc_bell;

#define LC_NO_DEADLINE UINT64_MAX

/* For a value that was changed otherwise. */
static inline void lc_bell_wake(lc_bell *bell)
{
    syscall(SYS_futex, bell, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

/* Rings: a thread that waits with an older value returns. Any thread, signal-safe. */
static inline void lc_bell_ring(lc_bell *bell)
{
    atomic_fetch_add_explicit(bell, 1, memory_order_release);
    lc_bell_wake(bell);
}

/* The same for a bell in shared memory, where processes wait. */
static inline void lc_bell_ring_shared(lc_bell *bell)
{
    atomic_fetch_add_explicit(bell, 1, memory_order_release);
    syscall(SYS_futex, bell, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

static inline bool lc_bell_wait_as(int operation, lc_bell *bell, uint32_t seen, uint64_t deadline_ns)
{
    struct timespec at;
    struct timespec *deadline = NULL;
    if (deadline_ns != LC_NO_DEADLINE) {
        at.tv_sec = (time_t)(deadline_ns / 1000000000u);
        at.tv_nsec = (long)(deadline_ns % 1000000000u);
        deadline = &at;
    }
    const long result = syscall(SYS_futex, bell, operation, seen, deadline, NULL, FUTEX_BITSET_MATCH_ANY);
    return !(result == -1 && errno == ETIMEDOUT);
}

/* Sleeps until the bell's value is no longer `seen`, the deadline (ns, monotonic) has passed, or for no
 * reason at all: the caller looks again. False: the deadline has passed. */
static inline bool lc_bell_wait(lc_bell *bell, uint32_t seen, uint64_t deadline_ns)
{
    /* WAIT_BITSET takes an absolute time; plain WAIT a relative one, which drifts. */
    return lc_bell_wait_as(FUTEX_WAIT_BITSET_PRIVATE, bell, seen, deadline_ns);
}

static inline bool lc_bell_wait_shared(lc_bell *bell, uint32_t seen, uint64_t deadline_ns)
{
    return lc_bell_wait_as(FUTEX_WAIT_BITSET, bell, seen, deadline_ns);
}

/* ---- lives of threads -------------------------------------------------------------------------------
 * The life of the watchdog's thread, in one word: it is asked to stop, is waited for with a limit, and
 * goes on after all where it had no time to stop. */

enum { LC_LIFE_OVER, LC_LIFE_RUNS, LC_LIFE_STOPS };

static inline bool lc_life_is(const lc_bell *life, uint32_t state)
{
    return atomic_load_explicit(life, memory_order_acquire) == state;
}

/* False: it was in another state than `from`. */
static inline bool lc_life_change(lc_bell *life, uint32_t from, uint32_t to)
{
    const bool changed = atomic_compare_exchange_strong(life, &from, to);
    if (changed) {
        lc_bell_wake(life);
    }
    return changed;
}

/* Waits until it stops no longer: it is over, or goes on. False: the deadline (ns, monotonic) has passed. */
static inline bool lc_life_stops_by(lc_bell *life, uint64_t deadline_ns)
{
    while (lc_life_is(life, LC_LIFE_STOPS) && lc_bell_wait(life, LC_LIFE_STOPS, deadline_ns)) {
    }
    return !lc_life_is(life, LC_LIFE_STOPS);
}
