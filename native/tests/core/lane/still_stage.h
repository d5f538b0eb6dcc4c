/* A stage whose clocks stand but for the ages that a story sets: what a lane and its watchdog measure is exact. */
#pragma once

#include "tests/core/clock/still_clock.h"
#include "tests/core/lane/bench_lane.h"

/* The clock stands far from 0: ages of hours lie behind it, also where the machine has just started. */
#define STILL_SINCE_BOOT_NS UINT64_C(1000000000000000)

/* Ticks are nanoseconds of the clock that stands, and nothing was seen of the machine's. */
static inline void stage_begin_clocks(stage *s)
{
    lc_clock_left = (lc_clock_stand_in){{0, 0}, 0};
    atomic_store(&lc_clock_chosen, LC_CLOCK_MONOTONIC);
    s->flight.header->clock_kind = LC_CLOCK_MONOTONIC;
    lc_flight_begin_clocks(&s->flight);
}

static inline void stage_open_still(stage *s)
{
    let_clock_run();
    stage_open(s);
    stop_clock();
    pass_time(STILL_SINCE_BOOT_NS);
    stage_begin_clocks(s);
    (void)stage_lane(s, 0); /* its limits, in these ticks */
}
