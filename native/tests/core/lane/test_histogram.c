/* Buckets are in order, hold what they say, and are at most a sixteenth of an octave wide. */
#include "core/flight/flight_format.h"

#include "tests/check.h"

int main(void)
{
    uint32_t last = 0;
    CHECK(lc_histogram_bucket(0) == 0 && lc_histogram_bucket(1023) == 0);
    CHECK(lc_histogram_bucket(1024) == 1);
    for (uint64_t ns = 1024; ns < (UINT64_C(1) << 41); ns += 1 + ns / 1000) {
        const uint32_t bucket = lc_histogram_bucket(ns);
        CHECK(bucket >= last && bucket - last <= 1 && bucket < LC_HISTOGRAM_BUCKETS);
        if (bucket + 1 < LC_HISTOGRAM_BUCKETS) {
            CHECK(lc_histogram_bucket(ns + ns / 15) > bucket);
        }
        last = bucket;
    }
    CHECK(last == LC_HISTOGRAM_BUCKETS - 1);
    CHECK(lc_histogram_bucket(UINT64_MAX) == LC_HISTOGRAM_BUCKETS - 1);
    return 0;
}
