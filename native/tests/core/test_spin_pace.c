/* When the watchdog asks for a look at what a lane runs. The lane's words and the time are set by hand. */
#include "bench_lane.h"
#include "spin_pace.h"
#include "tally.h"

static stage s;
static lc_spin_pace pace;
static uint64_t now_ns;

/* So long later, and so many turns, which took so long in all. Answers the turn that is asked for, 0: none. */
static uint64_t step(uint64_t later_ns, uint64_t turns, uint64_t busy_ns)
{
    const uint64_t rate = LC_LOAD(s.flight.header->tick_ns_q32);
    now_ns += later_ns;
    LC_STORE(s.lane->turn_epoch, LC_LOAD(s.lane->turn_epoch) + 2u * turns);
    LC_STORE(s.lane->busy_ticks, LC_LOAD(s.lane->busy_ticks) + lc_ns_to_ticks(busy_ns, rate));
    LC_STORE(s.lane->tally, 0);
    lc_spin_pace_step(&pace, s.lane, LC_LOAD(s.lane->turn_epoch), now_ns, rate);
    return LC_LOAD(s.lane->tally);
}

static void stage_at(uint64_t turn_epoch)
{
    now_ns = UINT64_C(1000000000000);
    pace = (lc_spin_pace){0};
    LC_STORE(s.lane->turn_epoch, turn_epoch);
    LC_STORE(s.lane->busy_ticks, 0);
    lc_spin_pace_want(&pace, s.lane);
    CHECK(step(0, 5, 0) == 0);
}

static void a_lane_that_is_at_work_is_looked_at_ten_times_a_second(void)
{
    stage_at(1);
    const uint64_t asked = step(LC_SPIN_LOOK_NS, 6400, LC_SPIN_LOOK_NS / 2u);
    CHECK(asked == LC_LOAD(s.lane->turn_epoch) + 2u * 101u); /* a turn of the next 2 ms, not this one */
    CHECK(step(LC_SPIN_LOOK_NS / 5u, 1280, LC_SPIN_LOOK_NS / 5u) == 0);
    CHECK(step(LC_SPIN_LOOK_NS, 6400, LC_SPIN_LOOK_NS) != 0);
}

static void of_long_turns_the_next_is_looked_at(void)
{
    stage_at(1);
    CHECK(step(LC_SPIN_LOOK_NS, 20, LC_SPIN_LOOK_NS) == LC_LOAD(s.lane->turn_epoch) + 2u);
}

static void between_two_turns_the_one_after_the_next_is_asked_for(void)
{
    stage_at(2);
    const uint64_t asked = step(LC_SPIN_LOOK_NS, 20, LC_SPIN_LOOK_NS);
    CHECK(asked == LC_LOAD(s.lane->turn_epoch) + 3u && (asked & 1u) == 1u);
}

static void a_lane_with_little_to_do_is_left_alone(void)
{
    stage_at(1);
    CHECK(step(LC_SPIN_LOOK_NS, 6400, LC_SPIN_LOOK_NS / 5u) == 0);
    CHECK(step(600u * LC_SPIN_LOOK_NS, 100, LC_SPIN_LOOK_NS) == 0); /* after a long rest, say */
}

static void a_stall_is_no_turn_after_turn(void)
{
    stage_at(1);
    CHECK(step(LC_SPIN_LOOK_NS, 0, LC_SPIN_LOOK_NS) == 0);
}

static void a_lane_whose_thread_does_not_look_is_not_asked(void)
{
    stage_at(1);
    LC_STORE(s.lane->generation, LC_LOAD(s.lane->generation) + 1u); /* it is another thread's now */
    CHECK(step(LC_SPIN_LOOK_NS, 6400, LC_SPIN_LOOK_NS) == 0);
    lc_spin_pace_want(&pace, s.lane);
    CHECK(step(LC_SPIN_LOOK_NS, 6400, LC_SPIN_LOOK_NS) != 0);
}

static void the_watchdog_asks_at_its_looks(void)
{
    lc_spin_pace *own = &s.watchdog.watches[0].pace;
    stage_at(2);
    lc_spin_pace_want(own, s.lane);
    look(&s);
    CHECK(own->at_ns != 0 && own->turn == LC_LOAD(s.lane->turn_epoch));
}

int main(void)
{
    stage_open(&s);
    a_lane_that_is_at_work_is_looked_at_ten_times_a_second();
    of_long_turns_the_next_is_looked_at();
    between_two_turns_the_one_after_the_next_is_asked_for();
    a_lane_with_little_to_do_is_left_alone();
    a_stall_is_no_turn_after_turn();
    a_lane_whose_thread_does_not_look_is_not_asked();
    the_watchdog_asks_at_its_looks();
    stage_close(&s);
    return 0;
}
