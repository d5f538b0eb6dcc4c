/* What the loop's histogram costs each turn, in nanoseconds.
 *
 * Turns of a realistic spread of lengths are put to lc_lane_turn_over, and again with one more increment of a
 * histogram after each: the difference is what the first one costs in its place, with its cache lines and its
 * branches. Both loops take turns, so that whatever else runs strikes both. Prints a line a round: ns of a
 * turn, ns with one more.
 *
 *   turn_histogram ROUNDS
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/flight/flight_format.h"
#include "core/lane/lane.h"

enum { LENGTHS = 1u << 16, TURNS = 1u << 20 };

static lc_header header;
static lc_word counters[LC_COUNTER_COUNT];
static lc_bell bell;
static lc_lane lane, other;
static uint64_t lengths[LENGTHS];

/* Log-normal about 200 us: half of the turns lie between 70 and 600 us, a hundredth above 8 ms. */
static void make_lengths(void)
{
    uint64_t state = 88172645463325252u;
    for (uint32_t i = 0; i < LENGTHS; i++) {
        double normal = 0.0;
        for (uint32_t each = 0; each < 12u; each++) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            normal += (double)(state >> 11) / 9007199254740992.0;
        }
        lengths[i] = (uint64_t)(200e3 * exp(1.6 * (normal - 6.0)));
    }
}

static __attribute__((noinline)) double one_loop(const lc_lane_context *context, int with_more)
{
    const uint64_t begin_ns = lc_now_ns();
    for (uint32_t i = 0; i < TURNS; i++) {
        const uint64_t took = lengths[i % LENGTHS];
        LC_STORE(lane.turn_begin, UINT64_C(1) << 40);
        lc_lane_turn_over(context, &lane, (UINT64_C(1) << 40) + took);
        if (with_more) {
            LC_ADD(other.turn_histogram[lc_histogram_bucket(took)], 1u);
        }
    }
    return (double)(lc_now_ns() - begin_ns) / TURNS;
}

int main(int argc, char **argv)
{
    const int rounds = argc > 1 ? atoi(argv[1]) : 1;
    const lc_lane_context context = {.header = &header, .counters = counters, .watchdog_bell = &bell};
    LC_STORE(header.tick_ns_q32, UINT64_C(1) << 32); /* a tick is a nanosecond */
    LC_STORE(lane.threshold, UINT64_MAX);
    LC_STORE(lane.long_limit, UINT64_MAX); /* there is no ring behind the lane */
    make_lengths();
    one_loop(&context, 0);
    one_loop(&context, 1);
    for (int i = 0; i < rounds; i++) {
        const double plain = one_loop(&context, 0);
        printf("%.3f %.3f\n", plain, one_loop(&context, 1));
    }
    return 0;
}
