/* Log-linear buckets of durations: 16 to the octave from 1.024 us to 18 minutes. Pure. */
#ifndef LOOPCANARY_HISTOGRAM_H
#define LOOPCANARY_HISTOGRAM_H

#include <stdint.h>

#include "core/flight/flight_format.h"

static inline uint32_t lc_histogram_bucket(uint64_t ns)
{
    if (ns < (UINT64_C(1) << LC_HISTOGRAM_MIN_BITS)) {
        return 0;
    }
    const uint32_t octave = 63u - (uint32_t)__builtin_clzll(ns) - LC_HISTOGRAM_MIN_BITS;
    if (octave >= LC_HISTOGRAM_OCTAVES) {
        return LC_HISTOGRAM_BUCKETS - 1u;
    }
    const uint32_t sub = (uint32_t)(ns >> (octave + LC_HISTOGRAM_MIN_BITS - LC_HISTOGRAM_SUB_BITS)) &
                         ((1u << LC_HISTOGRAM_SUB_BITS) - 1u);
    return 1u + (octave << LC_HISTOGRAM_SUB_BITS) + sub;
}

#endif
