/* Slots that a keeper has taken are used again; whatever else it writes, no stall is lost by it. */
#include "tests/core/lane/still_stage.h"

static stage s;

/* A stall that comes and ends; the watchdog looks once. */
static void stall(void)
{
    lc_turn_begin(stage_context(&s), s.lane);
    lc_callback_begin(s.lane, 7, 0);
    age_callback(&s, 2u * THRESHOLD_MS);
    lc_callback_end(stage_context(&s), s.lane);
    lc_turn_end(stage_context(&s), s.lane);
    look(&s);
}

static uint64_t serial_in(uint64_t index) { return LC_LOAD(slot(&s, index)->serial); }
static void take(uint64_t index, uint64_t serial) { LC_RELEASE(s.flight.keeper->taken[index], serial); }
static uint64_t slots_used(void) { return LC_LOAD(s.flight.header->sections[LC_SECTION_SLOTS].used); }

/* All slots are free again, as after a drain. */
static void empty_slots(void)
{
    for (uint64_t i = 0; i < slots_used(); i++) {
        LC_STORE(slot(&s, i)->state, LC_SLOT_FREE);
        take(i, 0);
    }
    LC_STORE(s.flight.header->takes, LC_TAKES_KEEPER);
}

TEST(a_new_file_is_the_drains)
{
    CHECK(LC_LOAD(s.flight.header->takes) == LC_TAKES_DRAIN && LC_LOAD(s.flight.header->text_written) == 0);
    CHECK(s.flight.header->sections[LC_SECTION_KEEPER].offset % LC_KEEPER_ALIGNMENT == 0);
    CHECK((uint8_t *)s.flight.keeper + LC_KEEPER_BYTES == s.flight.base + s.flight.bytes);
    CHECK(LC_LOAD(s.flight.keeper->pid) == 0 && LC_LOAD(s.flight.keeper->closed) == 0);
}

TEST(a_taken_slot_gets_the_next_stall)
{
    empty_slots();
    stall();
    const uint64_t first = serial_in(0);
    take(0, first);
    stall();
    CHECK(serial_in(0) == first + 1u && LC_LOAD(slot(&s, 0)->state) == LC_SLOT_ENDED);
    CHECK(slot(&s, 1) == NULL);
}

TEST(an_untaken_slot_is_kept)
{
    empty_slots();
    stall();
    const uint64_t first = serial_in(0);
    stall();
    CHECK(serial_in(0) == first && serial_in(1) == first + 1u);
}

TEST(another_serial_takes_nothing)
{
    empty_slots();
    stall();
    const uint64_t kept = serial_in(0), wrong[] = {0, kept - 1u, kept + 1u, UINT64_MAX};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        take(0, wrong[i]);
        stall();
        CHECK(serial_in(0) == kept);
    }
}

TEST(what_goes_on_is_not_taken)
{
    empty_slots();
    lc_lane *const other = stage_lane(&s, 1), *const first = s.lane;
    lc_turn_begin(stage_context(&s), s.lane);
    lc_callback_begin(s.lane, 7, 0);
    age_callback(&s, 2u * THRESHOLD_MS);
    look(&s);
    const uint64_t kept = serial_in(0);
    CHECK(LC_LOAD(slot(&s, 0)->state) == LC_SLOT_STALL);
    take(0, kept);
    s.lane = other;
    stall();
    s.lane = first;
    CHECK(serial_in(0) == kept && serial_in(1) == kept + 1u);
    lc_callback_end(stage_context(&s), s.lane);
    lc_turn_end(stage_context(&s), s.lane);
    look(&s);
    CHECK(serial_in(0) == kept && LC_LOAD(slot(&s, 0)->state) == LC_SLOT_ENDED &&
          LC_LOAD(slot(&s, 0)->end_ns) != 0);
}

TEST(what_a_keeper_took_before_the_program_judges_is_used_again)
{
    empty_slots();
    stall();
    const uint64_t first = serial_in(0);
    take(0, first);
    LC_STORE(s.flight.header->takes, LC_TAKES_DRAIN);
    stall();
    stall();
    CHECK(serial_in(0) == first + 1u && serial_in(1) == first + 2u);
}

TEST(what_finds_no_slot_is_counted_and_a_take_makes_room)
{
    empty_slots();
    for (uint64_t i = 0; i < LC_SLOT_COUNT; i++) {
        stall();
    }
    const uint64_t before = counted(&s, LC_COUNTER_stalls_dropped_no_slot);
    stall();
    CHECK(counted(&s, LC_COUNTER_stalls_dropped_no_slot) == before + 1u);
    take(9, serial_in(9));
    stall();
    CHECK(counted(&s, LC_COUNTER_stalls_dropped_no_slot) == before + 1u);
    CHECK(serial_in(9) > serial_in(LC_SLOT_COUNT - 1u));
}

TEST(over_the_limit_of_a_minute_is_counted_and_kept_out)
{
    empty_slots();
    lc_storm_begin(&s.watchdog.storm, 2, lc_now_ns());
    const uint64_t recorded = counted(&s, LC_COUNTER_stalls_recorded);
    for (unsigned i = 0; i < 5; i++) {
        stall();
    }
    CHECK(counted(&s, LC_COUNTER_stalls_recorded) == recorded + 2u);
    CHECK(counted(&s, LC_COUNTER_stalls_suppressed_storm) == 3);
    CHECK(LC_LOAD(slot(&s, 2)->state) == LC_SLOT_FREE);
    lc_turn_begin(stage_context(&s), s.lane); /* a hang may have been told already */
    lc_callback_begin(s.lane, 7, 0);
    age_callback(&s, 20u * THRESHOLD_MS);
    lc_callback_end(stage_context(&s), s.lane);
    lc_turn_end(stage_context(&s), s.lane);
    look(&s);
    CHECK(counted(&s, LC_COUNTER_stalls_recorded) == recorded + 3u);
    LC_STORE(s.flight.header->takes, LC_TAKES_DRAIN); /* which has a limit of its own */
    stall();
    CHECK(counted(&s, LC_COUNTER_stalls_recorded) == recorded + 4u);
    lc_storm_begin(&s.watchdog.storm, 0, 0);
}

int main(void)
{
    stage_open_still(&s);
    run_tests();
    stage_close(&s);
    return 0;
}
