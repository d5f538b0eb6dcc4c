/* Lets so many stalls a minute through: a minute's worth at once, then one after the other
 * (pipeline/guards.py, StormGuard). Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define LC_MINUTE_NS UINT64_C(60000000000)
#define LC_STALLS_PER_MINUTE_MOST UINT64_C(1000000)

typedef struct {
    uint64_t per_minute; /* at most the above; 0: all pass */
    uint64_t credit;     /* ns times per_minute; a stall costs a minute */
    uint64_t credited_ns;
} lc_storm;

static inline void lc_storm_begin(lc_storm *storm, uint64_t per_minute, uint64_t now_ns)
{
    storm->per_minute = per_minute < LC_STALLS_PER_MINUTE_MOST ? per_minute : LC_STALLS_PER_MINUTE_MOST;
    storm->credit = storm->per_minute * LC_MINUTE_NS;
    storm->credited_ns = now_ns;
}

static inline bool lc_storm_admits(lc_storm *storm, uint64_t now_ns)
{
    const uint64_t full = storm->per_minute * LC_MINUTE_NS;
    const uint64_t passed_ns = now_ns > storm->credited_ns ? now_ns - storm->credited_ns : 0u;
    const uint64_t gained = (passed_ns < LC_MINUTE_NS ? passed_ns : LC_MINUTE_NS) * storm->per_minute;
    storm->credited_ns += passed_ns;
    storm->credit = full - storm->credit < gained ? full : storm->credit + gained;
    if (storm->per_minute == 0) {
        return true;
    }
    if (storm->credit < LC_MINUTE_NS) {
        return false;
    }
    storm->credit -= LC_MINUTE_NS;
    return true;
}
