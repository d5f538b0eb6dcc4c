/* What a lane's turns tell of the moment at which something came. */
#include "lane_look.h"

#include <string.h>

#include "check.h"

#define ONE_NS_A_TICK (UINT64_C(1) << 32)
#define MS UINT64_C(1000000)

static lc_lane lane;

/* The last turn took from 1,000 ms to 1,200 ms, the present one began so much later. */
static bool look(uint64_t rest_ns, lc_look *out)
{
    const lc_turn_before before = {1000 * MS, 1200 * MS};
    const lc_instant now = {.ns = 7000 * MS, .ticks = 1300 * MS};
    memset(&lane, 0, sizeof lane);
    lane.turn_epoch = 3;
    lane.turn_begin = before.end + rest_ns;
    lane.busy_ticks = 500 * MS;
    return lc_lane_look(&lane, before, now, ONE_NS_A_TICK, out);
}

static void what_a_wait_finds_at_once_came_during_the_turn_before(void)
{
    lc_look found;
    CHECK(look(2000, &found));
    CHECK(found.after_ns == 6700 * MS && found.until_ns == 6900 * MS);
    CHECK(found.rested == 700 * MS + 2000 && found.rate == ONE_NS_A_TICK);
}

static void what_ends_a_wait_came_at_its_end(void)
{
    lc_look found;
    CHECK(look(10 * MS, &found));
    CHECK(found.after_ns == 6910 * MS && found.until_ns == found.after_ns);
}

static void a_loop_has_rested_or_not_since_an_earlier_look(void)
{
    lc_look found;
    CHECK(look(0, &found));
    CHECK(lc_look_goes_on(found.rested, &found) && lc_look_goes_on(found.rested - LC_LOOK_REST_NS, &found));
    CHECK(!lc_look_goes_on(found.rested - LC_LOOK_REST_NS - 1, &found));
    CHECK(!lc_look_goes_on(found.rested + 1, &found)); /* of another lane, or of one that began anew */
}

static void without_a_turn_or_a_turn_before_it_little_is_told(void)
{
    lc_look found;
    const lc_instant now = {.ns = 7000 * MS, .ticks = 1300 * MS};
    CHECK(look(0, &found) && lc_lane_look(&lane, (lc_turn_before){0}, now, ONE_NS_A_TICK, &found));
    CHECK(found.after_ns == 6900 * MS && found.until_ns == 6900 * MS);
    CHECK(lc_lane_look(&lane, (lc_turn_before){5, 4}, now, ONE_NS_A_TICK, &found) && found.after_ns == 6900 * MS);
    lane.turn_begin = 1400 * MS; /* ticks that stepped back */
    CHECK(lc_lane_look(&lane, (lc_turn_before){0}, now, ONE_NS_A_TICK, &found) && found.until_ns == 7000 * MS);
    lane.turn_epoch = 4;
    CHECK(!lc_lane_look(&lane, (lc_turn_before){0}, now, ONE_NS_A_TICK, &found));
}

int main(void)
{
    what_a_wait_finds_at_once_came_during_the_turn_before();
    what_ends_a_wait_came_at_its_end();
    a_loop_has_rested_or_not_since_an_earlier_look();
    without_a_turn_or_a_turn_before_it_little_is_told();
    return 0;
}
