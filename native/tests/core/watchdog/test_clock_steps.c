/* A machine that sleeps and a counter that is set, in the middle of work. The clocks are virtual: to go
 * on, what was before is moved into the past, on the ticks alone. */
#include "core/watchdog/watch_state.h"
#include "tests/core/lane/still_stage.h"

static stage s;

static uint64_t ticks_of(uint64_t ms)
{
    return lc_ns_to_ticks(ms * MS, LC_LOAD(s.flight.header->tick_ns_q32));
}

/* The counter is found to have gone on by as many ticks, while CLOCK_MONOTONIC stood. */
static void move_counter(uint64_t ticks)
{
    lc_instant *const known[] = {&s.flight.paired, &s.flight.refined, &s.flight.looked, &s.watchdog.now};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        known[i]->ticks -= ticks;
    }
    for (unsigned i = 0; i < s.flight.step_count; i++) {
        s.flight.steps[i].before.ticks -= ticks;
        s.flight.steps[i].middle -= ticks;
    }
    LC_STORE(s.lane->begin, LC_LOAD(s.lane->begin) - ticks);
    LC_STORE(s.lane->turn_begin, LC_LOAD(s.lane->turn_begin) - ticks);
}

static void sleep_for(uint64_t ms)
{
    move_counter(ticks_of(ms));
    s.flight.slept_ns -= ms * MS;
}

static void begin_story(void)
{
    LC_STORE(s.flight.counters[LC_COUNTER_clock_steps], 0);
    LC_STORE(s.flight.counters[LC_COUNTER_suspends], 0);
    LC_STORE(s.flight.counters[LC_COUNTER_stalls_recorded], 0);
    stage_begin_clocks(&s);
    s.flight.header->clock_kind = LC_CLOCK_TSC; /* a counter, which may step */
    s.flight.is_refined = false;
    s.flight.step_count = 0;
    for (uint64_t i = 0; i < LC_SLOT_COUNT && slot(&s, i) != NULL; i++) {
        LC_STORE(slot(&s, i)->state, LC_SLOT_FREE);
    }
}

static void begin_callback(void)
{
    lc_turn_begin(stage_context(&s), s.lane);
    lc_callback_begin(s.lane, 7, 0);
}

static void end_work(void)
{
    lc_callback_end(stage_context(&s), s.lane);
    lc_turn_end(stage_context(&s), s.lane);
    look(&s);
}

static bool is_about(uint64_t ns, uint64_t ms) { return ns >= ms * MS && ns < (ms + 1u) * MS; }

TEST(a_callback_that_the_machine_slept_through_is_no_stall)
{
    begin_story();
    begin_callback();
    age_callback(&s, 50);
    look(&s);
    CHECK(LC_LOAD(slot(&s, 0)->state) == LC_SLOT_OPEN);
    sleep_for(3000);
    look(&s);
    CHECK(LC_LOAD(slot(&s, 0)->state) == LC_SLOT_OPEN);
    end_work();
    CHECK(LC_LOAD(slot(&s, 0)->state) == LC_SLOT_FREE);
    CHECK(counted(&s, LC_COUNTER_suspends) == 1 && counted(&s, LC_COUNTER_clock_steps) == 0);
    CHECK(counted(&s, LC_COUNTER_stalls_recorded) == 0 && LC_LOAD(s.lane->ended_count) == 1);
}

TEST(a_callback_that_ends_as_the_machine_wakes_is_no_stall)
{
    begin_story();
    begin_callback();
    look(&s);
    sleep_for(3000);
    end_work();
    CHECK(counted(&s, LC_COUNTER_suspends) == 1 && counted(&s, LC_COUNTER_stalls_recorded) == 0);
}

TEST(a_sleep_in_the_middle_of_a_look_is_no_stall)
{
    begin_story();
    begin_callback();
    look(&s);
    sleep_for(3000);
    lc_callback_end(stage_context(&s), s.lane);
    lc_stall_slot_take_ended(&s.watchdog, 0, s.lane, &s.watchdog.watches[0]);
    lc_turn_end(stage_context(&s), s.lane);
    CHECK(counted(&s, LC_COUNTER_suspends) == 1 && counted(&s, LC_COUNTER_stalls_recorded) == 0);
}

TEST(a_turn_that_the_machine_slept_through_is_no_stall)
{
    begin_story();
    lc_turn_begin(stage_context(&s), s.lane);
    look(&s);
    sleep_for(3000);
    lc_turn_end(stage_context(&s), s.lane);
    look(&s);
    CHECK(counted(&s, LC_COUNTER_suspends) == 1 && counted(&s, LC_COUNTER_stalls_recorded) == 0);
}

TEST(of_a_stall_around_sleeps_the_time_awake_counts)
{
    begin_story();
    begin_callback();
    age_callback(&s, 150);
    look(&s);
    const uint64_t begin_ns = LC_LOAD(slot(&s, 0)->begin_ns);
    sleep_for(1500);
    look(&s);
    sleep_for(1500);
    look(&s);
    const lc_slot *it = slot(&s, 0);
    CHECK(LC_LOAD(it->state) == LC_SLOT_STALL && LC_LOAD(it->level) == LC_LEVEL_STALL);
    end_work();
    CHECK(LC_LOAD(it->state) == LC_SLOT_ENDED && LC_LOAD(it->level) == LC_LEVEL_STALL);
    CHECK(LC_LOAD(it->begin_ns) + MS > begin_ns && LC_LOAD(it->begin_ns) < begin_ns + MS);
    CHECK(is_about(LC_LOAD(it->end_ns) - LC_LOAD(it->begin_ns), 150));
    CHECK(is_about(LC_LOAD(it->longest_ns), 150) && is_about(LC_LOAD(it->turn_callback_ns), 150));
    CHECK(counted(&s, LC_COUNTER_suspends) == 2);
}

TEST(work_after_a_sleep_is_measured_as_ever)
{
    begin_story();
    sleep_for(3000);
    look(&s);
    begin_callback();
    age_callback(&s, 200);
    end_work();
    CHECK(is_about(LC_LOAD(slot(&s, 0)->end_ns) - LC_LOAD(slot(&s, 0)->begin_ns), 200));
}

TEST(a_counter_that_is_set_ahead_makes_no_stall)
{
    begin_story();
    begin_callback();
    look(&s);
    move_counter(ticks_of(3000));
    look(&s);
    end_work();
    CHECK(counted(&s, LC_COUNTER_clock_steps) == 1 && counted(&s, LC_COUNTER_suspends) == 0);
    CHECK(counted(&s, LC_COUNTER_stalls_recorded) == 0);
}

TEST(a_counter_that_is_set_back_does_not_blind_the_watchdog)
{
    begin_story();
    begin_callback();
    look(&s);
    move_counter(0u - ticks_of(3000));
    age_callback(&s, 150);
    CHECK(look(&s) < lc_now_ns() + 10u * MS);
    CHECK(counted(&s, LC_COUNTER_clock_steps) == 1);
    CHECK(LC_LOAD(slot(&s, 0)->state) == LC_SLOT_STALL && LC_LOAD(slot(&s, 0)->level) == LC_LEVEL_STALL);
    end_work();
    CHECK(LC_LOAD(slot(&s, 0)->state) == LC_SLOT_FREE);
    begin_callback();
    age_callback(&s, 200);
    end_work();
    CHECK(is_about(LC_LOAD(slot(&s, 0)->end_ns) - LC_LOAD(slot(&s, 0)->begin_ns), 200));
}

TEST(a_counter_that_is_set_twice_is_left)
{
    begin_story();
    for (int i = 0; i < 2; i++) {
        CHECK(s.flight.header->clock_kind == LC_CLOCK_TSC);
        move_counter(ticks_of(3000));
        look(&s);
    }
    CHECK(s.flight.header->clock_kind == LC_CLOCK_MONOTONIC && lc_clock_left.from.ns != 0);
    const lc_instant now = lc_clock_pair();
    const uint64_t ns = lc_flight_ns(&s.flight, now.ticks);
    CHECK(ns + 1000u > now.ns && ns < now.ns + 1000u);
    begin_callback();
    age_callback(&s, 200);
    end_work();
    CHECK(is_about(LC_LOAD(slot(&s, 0)->end_ns) - LC_LOAD(slot(&s, 0)->begin_ns), 200));
}

/* The last second, at this rate. */
static void pass_a_second(uint64_t rate)
{
    lc_instant *const known[] = {&s.flight.paired, &s.flight.refined, &s.flight.looked};
    const lc_instant now = lc_clock_pair();
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        *known[i] = (lc_instant){now.ns - 1000000000u, now.ticks - lc_ns_to_ticks(1000000000u, rate)};
    }
}

TEST(the_first_rate_is_made_better_and_a_later_one_checked)
{
    begin_story();
    const uint64_t rate = LC_LOAD(s.flight.header->tick_ns_q32);
    pass_a_second(rate + rate / 200u);
    look(&s);
    const uint64_t refined = LC_LOAD(s.flight.header->tick_ns_q32);
    CHECK(counted(&s, LC_COUNTER_clock_steps) == 0 && s.flight.is_refined);
    CHECK(refined > rate + rate / 400u && refined < rate + rate / 190u);
    pass_a_second(refined + refined / 50u); /* another machine's counter */
    look(&s);
    CHECK(counted(&s, LC_COUNTER_clock_steps) == 1);
    CHECK(LC_LOAD(s.flight.header->tick_ns_q32) == refined);
}

int main(void)
{
    stage_open_still(&s);
    run_tests();
    stage_close(&s);
    return 0;
}
