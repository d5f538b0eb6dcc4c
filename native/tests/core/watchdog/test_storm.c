/* How many stalls the watchdog passes on to a keeper in a minute. */
#include "core/watchdog/storm.h"
#include "tests/core/lane/bench_lane.h"

#define SECOND UINT64_C(1000000000)

TEST(so_many_stalls_pass_in_a_minute)
{
    lc_storm storm;
    unsigned passed = 0;
    lc_storm_begin(&storm, 3, SECOND);
    for (unsigned i = 0; i < 10; i++) {
        passed += lc_storm_admits(&storm, SECOND);
    }
    CHECK(passed == 3 && !lc_storm_admits(&storm, 20 * SECOND) && lc_storm_admits(&storm, 21 * SECOND));
    CHECK(!lc_storm_admits(&storm, 5 * SECOND)); /* a clock that steps back gives nothing */
    for (unsigned i = 0; i < 3; i++) {
        CHECK(lc_storm_admits(&storm, UINT64_MAX));
    }
    CHECK(!lc_storm_admits(&storm, UINT64_MAX));
    lc_storm_begin(&storm, 0, 0);
    CHECK(lc_storm_admits(&storm, 1));
}

int main(void) { return run_tests(); }
