/* The ring of long work: what is recorded of callbacks and turns, and that the rest is the difference of
 * the sums. */
#include <string.h>

#include "tests/core/lane/still_stage.h"

static stage s;

static uint64_t ticks_of(uint64_t ns) { return lc_ns_to_ticks(ns, LC_LOAD(s.flight.header->tick_ns_q32)); }

#define LIMIT_NS (20u * MS)

static void named(lc_frame_source *self, uint64_t work, lc_long_work *entry)
{
    (void)self;
    snprintf(entry->name, sizeof entry->name, "work %u", (unsigned)work);
    snprintf(entry->task, sizeof entry->task, "task %u", (unsigned)work);
}

static void begin_story(void)
{
    memset((char *)s.lane, 0, LC_LANE_BYTES);
    (void)stage_lane(&s, 0);
    s.source.source.name_ended = named;
    LC_STORE(s.lane->long_limit, ticks_of(LIMIT_NS));
    LC_STORE(s.lane->long_limit_least, ticks_of(LIMIT_NS));
}

static void begin_turn(void) { lc_turn_begin(stage_context(&s), s.lane); }
static void end_turn(void) { lc_turn_end(stage_context(&s), s.lane); }

/* Inside a turn, which gets as much older. */
static void callback(uint64_t work, uint64_t ms)
{
    lc_callback_begin(s.lane, work, 0);
    age_callback(&s, ms);
    lc_callback_end(stage_context(&s), s.lane);
}

static uint64_t recorded(void) { return LC_LOAD(s.lane->long_count); }
static const lc_long_work *entry(uint64_t sequence) { return lc_long_work_entry(s.lane, sequence); }

TEST(short_callbacks_are_not_recorded)
{
    begin_story();
    begin_turn();
    for (uint64_t i = 0; i < 100; i++) {
        callback(i, 0);
    }
    end_turn();
    CHECK(recorded() == 0);
}

TEST(a_long_callback_is_recorded_with_its_name)
{
    begin_story();
    begin_turn();
    callback(7, 30);
    CHECK(recorded() == 1);
    const lc_long_work *e = entry(1);
    CHECK(LC_LOAD(e->sequence) == 1 && LC_LOAD(e->kind) == LC_ENDED_CALLBACK);
    CHECK(strcmp(e->name, "work 7") == 0 && strcmp(e->task, "task 7") == 0);
    CHECK(LC_LOAD(e->end) - LC_LOAD(e->begin) >= ticks_of(30 * MS));
    CHECK(LC_LOAD(e->epoch) + 1u == LC_LOAD(s.lane->epoch));
    CHECK(LC_LOAD(e->limit) == ticks_of(LIMIT_NS));
    end_turn();
    CHECK(recorded() == 1); /* the turn did nothing else */
}

TEST(the_sums_before_are_those_at_its_begin)
{
    begin_story();
    for (int i = 0; i < 3; i++) {
        begin_turn();
        callback(1, 0);
        callback(1, 0);
        end_turn();
    }
    begin_turn();
    callback(1, 0);
    callback(2, 30);
    const lc_long_work *e = entry(1);
    CHECK(LC_LOAD(e->turns_before) == 3 && LC_LOAD(e->callbacks_before) == 7);
    CHECK(LC_LOAD(e->busy_ticks_before) ==
          LC_LOAD(s.lane->busy_ticks) + LC_LOAD(e->begin) - LC_LOAD(s.lane->turn_begin));
    end_turn();
}

TEST(a_turn_of_many_short_callbacks_is_recorded_as_a_whole)
{
    begin_story();
    begin_turn();
    for (int i = 0; i < 8; i++) {
        callback(1, 5);
    }
    end_turn();
    CHECK(recorded() == 1);
    const lc_long_work *e = entry(1);
    CHECK(LC_LOAD(e->kind) == LC_ENDED_TURN && LC_LOAD(e->callbacks) == 8);
    CHECK(LC_LOAD(e->longest_ticks) >= ticks_of(5 * MS));
    CHECK(LC_LOAD(e->turns_before) == 0 && LC_LOAD(e->callbacks_before) == 0 &&
          LC_LOAD(e->busy_ticks_before) == 0);
    CHECK(e->name[0] == '\0');
}

TEST(a_turn_that_its_recorded_callbacks_explain_is_not_recorded_too)
{
    begin_story();
    begin_turn();
    callback(1, 30);
    callback(2, 30);
    end_turn();
    CHECK(recorded() == 2);
    begin_turn();
    callback(3, 30);
    age_turn(&s, 30); /* something else */
    end_turn();
    CHECK(recorded() == 4 && LC_LOAD(entry(4)->kind) == LC_ENDED_TURN);
}

TEST(what_is_left_of_a_turn_beside_a_stalled_callback_is_judged_alone)
{
    begin_story();
    begin_turn();
    for (int i = 0; i < 5; i++) {
        callback(1, 30);
    }
    callback(2, 160);
    for (int i = 0; i < 6; i++) {
        callback(3, 20);
    }
    end_turn();
    const lc_ended *before = &s.lane->ended[0], *stalled = before + 1, *after = before + 2;
    CHECK(LC_LOAD(s.lane->ended_count) == 3);
    CHECK(LC_LOAD(before->kind) == LC_ENDED_TURN && LC_LOAD(before->turn_callbacks) == 5);
    CHECK(LC_LOAD(before->longest_ticks) >= ticks_of(30 * MS) &&
          LC_LOAD(before->longest_ticks) < ticks_of(160 * MS));
    CHECK(LC_LOAD(before->turn_callback_ticks) <= LC_LOAD(before->end) - LC_LOAD(before->begin));
    CHECK(LC_LOAD(before->cpu_ns) == 0); /* it is read when the callback ends */
    CHECK(LC_LOAD(stalled->kind) == LC_ENDED_CALLBACK && LC_LOAD(stalled->turn_callbacks) == 6);
    CHECK(LC_LOAD(before->end) == LC_LOAD(stalled->begin) &&
          LC_LOAD(before->end) - LC_LOAD(before->begin) >= ticks_of(150 * MS));
    CHECK(LC_LOAD(after->kind) == LC_ENDED_TURN && LC_LOAD(after->turn_callbacks) == 6);
    CHECK(LC_LOAD(after->end) - LC_LOAD(after->begin) >= ticks_of(120 * MS));
    CHECK(LC_LOAD(after->longest_ticks) < ticks_of(160 * MS));
    CHECK(LC_LOAD(s.lane->callbacks) == 12 && LC_LOAD(s.lane->stalls) == 3);
    begin_turn(); /* nothing of it is left for the next turn */
    callback(4, 1);
    end_turn();
    CHECK(LC_LOAD(s.lane->ended_count) == 3 && LC_LOAD(s.lane->callbacks) == 13);
}

TEST(a_part_of_a_turn_that_is_no_stall_is_long_work)
{
    begin_story();
    begin_turn();
    for (int i = 0; i < 8; i++) {
        callback(1, 10);
    }
    callback(2, 200);
    end_turn();
    CHECK(recorded() == 2 && LC_LOAD(s.lane->ended_count) == 1);
    CHECK(LC_LOAD(entry(2)->kind) == LC_ENDED_TURN && LC_LOAD(entry(2)->callbacks) == 8);
    CHECK(LC_LOAD(entry(2)->end) == LC_LOAD(entry(1)->begin));
}

TEST(a_turn_that_ended_in_a_callback_has_no_part_before_it)
{
    begin_story();
    begin_turn();
    for (int i = 0; i < 6; i++) {
        callback(1, 19);
    }
    lc_callback_begin(s.lane, 2, 0);
    end_turn();
    const uint64_t callbacks = LC_LOAD(s.lane->callbacks);
    age_callback(&s, 150);
    lc_callback_end(stage_context(&s), s.lane);
    CHECK(LC_LOAD(s.lane->ended_count) == 2 && LC_LOAD(s.lane->callbacks) == callbacks);
}

TEST(stalls_are_recorded_too_and_before_they_are_told)
{
    begin_story();
    begin_turn();
    callback(1, 150);
    end_turn();
    CHECK(recorded() == 1 && LC_LOAD(s.lane->ended_count) == 1);
    CHECK(LC_LOAD(entry(1)->epoch) == LC_LOAD(s.lane->ended[0].epoch));
    begin_turn();
    for (int i = 0; i < 5; i++) {
        callback(2, 30);
    }
    end_turn();
    CHECK(LC_LOAD(s.lane->ended_count) == 2 && LC_LOAD(s.lane->ended[1].kind) == LC_ENDED_TURN);
    CHECK(recorded() == 7); /* its callbacks explain it, but it is the stall */
    CHECK(LC_LOAD(entry(7)->kind) == LC_ENDED_TURN &&
          LC_LOAD(entry(7)->epoch) == LC_LOAD(s.lane->ended[1].turn_epoch));
}

TEST(the_ring_goes_round)
{
    begin_story();
    for (uint64_t i = 1; i <= 2u * LC_LONG_WORK_COUNT + 5u; i++) {
        LC_STORE(s.lane->long_round, 0); /* no haste */
        begin_turn();
        callback(i, 30);
        end_turn();
    }
    const uint64_t last = recorded();
    CHECK(last == 2u * LC_LONG_WORK_COUNT + 5u && LC_LOAD(entry(last)->sequence) == last);
    CHECK(LC_LOAD(entry(last + 1u)->sequence) == last + 1u - LC_LONG_WORK_COUNT);
    CHECK(strcmp(entry(last)->name, "work 133") == 0);
}

TEST(a_round_in_haste_doubles_the_limit_up_to_half_the_threshold)
{
    begin_story();
    const uint64_t least = ticks_of(3u * MS);
    uint64_t limit = least;
    LC_STORE(s.lane->long_limit, least);
    for (uint32_t begun = 0, i = 0; begun < 6; i++) {
        const uint64_t rounds = (recorded() + LC_LONG_WORK_COUNT - 1u) / LC_LONG_WORK_COUNT;
        begin_turn();
        callback(i, 60);
        end_turn();
        if ((recorded() + LC_LONG_WORK_COUNT - 1u) / LC_LONG_WORK_COUNT != rounds) {
            const uint64_t now = LC_LOAD(s.lane->long_limit);
            CHECK(now == (begun == 0 ? limit : limit * 2u) ||
                  (now == limit && limit * 4u > LC_LOAD(s.lane->threshold)));
            limit = now;
            begun++;
        }
        LC_STORE(s.lane->long_round, lc_now_ticks() - ticks_of(MS)); /* in haste, whatever the ages */
    }
    CHECK(limit == least * 16u && limit <= LC_LOAD(s.lane->threshold) / 2u);
    /* What is watched for stalls is the same. */
    CHECK(LC_LOAD(s.lane->ended_count) == 0);
}

TEST(a_quiet_while_lets_the_limit_begin_again)
{
    begin_story();
    const uint64_t least = LC_LOAD(s.lane->long_limit);
    const uint64_t rate = LC_LOAD(s.flight.header->tick_ns_q32);
    begin_turn();
    callback(1, 90);
    end_turn();
    LC_STORE(s.lane->long_limit, least * 4u);
    const uint64_t end = LC_LOAD(entry(1)->end);
    lc_long_work_relax(s.lane, end + ticks_of(LC_LONG_ROUND_NS) / 2u, rate);
    CHECK(LC_LOAD(s.lane->long_limit) == least * 4u);
    lc_long_work_relax(s.lane, end + ticks_of(LC_LONG_ROUND_NS) * 2u, rate);
    CHECK(LC_LOAD(s.lane->long_limit) == least);
}

TEST(the_limit_is_never_above_the_threshold)
{
    begin_story();
    const uint64_t rate = LC_LOAD(s.flight.header->tick_ns_q32);
    LC_STORE(s.lane->threshold, ticks_of(100000));
    lc_long_work_open(s.lane, rate);
    CHECK(LC_LOAD(s.lane->long_limit) == ticks_of(100000));
    LC_STORE(s.lane->threshold, ticks_of(THRESHOLD_MS * (uint64_t)MS));
    lc_long_work_open(s.lane, rate);
    CHECK(LC_LOAD(s.lane->long_limit) == ticks_of(LC_LONG_LEAST_NS));
}

int main(void)
{
    stage_open_still(&s);
    run_tests();
    stage_close(&s);
    return 0;
}
