/* The life of the watchdog's thread, in one word: it is asked to stop, is waited for with a limit, and
 * goes on after all where it had no time to stop. */
#pragma once

#include "core/watchdog/futex.h"

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
