#include "lane_look.h"

static uint64_t ago(lc_instant now, uint64_t ticks, uint64_t rate)
{
    const uint64_t ns = now.ticks > ticks ? lc_ticks_to_ns(now.ticks - ticks, rate) : 0u;
    return ns < now.ns ? now.ns - ns : 0u;
}

bool lc_lane_look(const lc_lane *lane, lc_turn_before before, lc_instant now, uint64_t rate, lc_look *out)
{
    if (!lc_lane_in_turn(lane)) {
        return false;
    }
    const uint64_t turn = LC_LOAD(lane->turn_begin);
    const bool rested = before.end == 0 || before.end > turn || before.begin > before.end ||
                        lc_ticks_to_ns(turn - before.end, rate) > LC_LOOK_REST_NS;
    *out = (lc_look){
        .after_ns = ago(now, rested ? turn : before.begin, rate),
        .until_ns = ago(now, rested ? turn : before.end, rate),
        .rested = turn - LC_LOAD(lane->busy_ticks),
        .rate = rate,
    };
    return true;
}
