/* What a lane adds up over its life. */
#include "tests/core/lane/still_stage.h"

static stage s;

static uint64_t ticks_of(uint64_t ns) { return lc_ns_to_ticks(ns, LC_LOAD(s.flight.header->tick_ns_q32)); }

/* A callback of about this length: its begin is set, its end is now. Answers the length that was noted. */
static uint64_t callback_of(uint64_t ticks)
{
    lc_callback_begin(s.lane, 8, 0);
    LC_RELEASE(s.lane->begin, LC_LOAD(s.lane->begin) - ticks);
    return lc_callback_end(stage_context(&s), s.lane);
}

static unsigned __int128 squares(void)
{
    return (unsigned __int128)LC_LOAD(s.lane->callback_ticks2_high) << 64 |
           LC_LOAD(s.lane->callback_ticks2_low);
}

TEST(callbacks_and_their_squares_are_exact)
{
    unsigned __int128 wanted = 0;
    uint64_t sum = 0;
    for (uint64_t turn = 0; turn < 3; turn++) {
        lc_turn_begin(stage_context(&s), s.lane);
        for (uint64_t i = 0; i < 50; i++) {
            const uint64_t took = callback_of(i * 1000u);
            wanted += (unsigned __int128)took * took;
            sum += took;
        }
        lc_turn_end(stage_context(&s), s.lane);
    }
    CHECK(squares() == wanted && LC_LOAD(s.lane->callback_ticks) == sum);
}

TEST(squares_beyond_64_bits_are_exact_too)
{
    const unsigned __int128 before = squares();
    unsigned __int128 wanted = 0;
    LC_STORE(s.lane->threshold, UINT64_MAX); /* no stall: their records are another story */
    lc_turn_begin(stage_context(&s), s.lane);
    for (int i = 0; i < 5; i++) {
        const uint64_t big = callback_of(UINT64_C(3) << 31); /* its square fits, the sum of them does not */
        const uint64_t huge = callback_of(UINT64_C(1) << 40);
        wanted += (unsigned __int128)big * big + (unsigned __int128)huge * huge;
    }
    lc_turn_end(stage_context(&s), s.lane);
    CHECK(squares() - before == wanted);
    LC_STORE(s.lane->threshold, ticks_of(THRESHOLD_MS * MS));
}

TEST(stalls_are_counted_by_their_thread)
{
    const uint64_t stalls = LC_LOAD(s.lane->stalls);
    const uint64_t stalled = LC_LOAD(s.lane->stalled_ticks);
    uint64_t sum = 0;
    for (int i = 0; i < 40; i++) { /* more than there are slots, or places in the ring */
        lc_turn_begin(stage_context(&s), s.lane);
        sum += callback_of(ticks_of(150 * MS));
        lc_turn_end(stage_context(&s), s.lane);
    }
    CHECK(LC_LOAD(s.lane->stalls) - stalls == 40);
    CHECK(LC_LOAD(s.lane->stalled_ticks) - stalled == sum);
}

TEST(slices_are_congested_by_turns_longer_than_one)
{
    CHECK(lc_congested_slices(0, 0, LC_SLICE_NS) == 0);
    CHECK(lc_congested_slices(0, 0, LC_SLICE_NS + 1) == 1);
    CHECK(lc_congested_slices(0, LC_SLICE_NS / 2, LC_SLICE_NS * 3 / 2 + 1) == 1);
    CHECK(lc_congested_slices(0, LC_SLICE_NS / 2, LC_SLICE_NS * 5 / 2) == 2);
    CHECK(lc_congested_slices(1000, 1000, 1000 + 10 * LC_SLICE_NS) == 9);
    /* begun before the lane: no such turn */
    CHECK(lc_congested_slices(1000, 999, 1000 + 10 * LC_SLICE_NS) == 0);
}

TEST(a_long_turn_adds_its_slices)
{
    LC_STORE(s.lane->opened_ns, lc_now_ns() - 60u * 1000u * 1000000u);
    const uint64_t before = LC_LOAD(s.lane->slices_congested);
    lc_turn_begin(stage_context(&s), s.lane);
    LC_RELEASE(s.lane->turn_begin, LC_LOAD(s.lane->turn_begin) - ticks_of(2000u * 1000000u));
    lc_turn_end(stage_context(&s), s.lane);
    CHECK(LC_LOAD(s.lane->slices_congested) - before == 20); /* 1.9 s, which touch so many */
    const uint64_t after = LC_LOAD(s.lane->slices_congested);
    for (int i = 0; i < 100; i++) {
        lc_turn_begin(stage_context(&s), s.lane);
        LC_RELEASE(s.lane->turn_begin, LC_LOAD(s.lane->turn_begin) - ticks_of(1000));
        lc_turn_end(stage_context(&s), s.lane);
    }
    CHECK(LC_LOAD(s.lane->slices_congested) == after);
}

int main(void)
{
    stage_open_still(&s);
    run_tests();
    stage_close(&s);
    return 0;
}
