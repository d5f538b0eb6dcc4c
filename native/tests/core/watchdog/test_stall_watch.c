/* The life of a stall, told as stories; the watchdog looks when the story says so. Ages are set, not
 * slept. */

#include "tests/core/lane/still_stage.h"

static stage s;

static void begin_callback(uint64_t work)
{
    lc_turn_begin(stage_context(&s), s.lane);
    lc_callback_begin(s.lane, work, 0);
}

static void end_callback(void) { lc_callback_end(stage_context(&s), s.lane); }
static void end_turn(void) { lc_turn_end(stage_context(&s), s.lane); }

/* Callback and turn, and the watchdog looks. */
static void end_work(void)
{
    end_callback();
    end_turn();
    look(&s);
}

TEST(a_short_callback_leaves_nothing)
{
    begin_callback(7);
    look(&s);
    end_work();
    CHECK(slot(&s, 0) == NULL && s.source.walks == 0);
    CHECK(LC_LOAD(s.lane->turns) == 1 && LC_LOAD(s.lane->callbacks) == 1);
}

TEST(a_callback_past_the_delay_is_sampled_and_forgotten)
{
    begin_callback(7);
    age_callback(&s, 50);
    look(&s);
    CHECK(LC_LOAD(slot(&s, 0)->state) == LC_SLOT_OPEN);
    CHECK(LC_LOAD(slot(&s, 0)->sample_count) == 1 && LC_LOAD(slot(&s, 0)->level) == LC_LEVEL_NONE);
    end_work();
    CHECK(LC_LOAD(slot(&s, 0)->state) == LC_SLOT_FREE);
    CHECK(counted(&s, LC_COUNTER_stalls_recorded) == 0);
}

static uint64_t look_at_work_of(uint64_t ms)
{
    enum { TICK_MS = 35 };
    const uint64_t tick = s.watchdog.settings.tick_ns;
    s.watchdog.settings.tick_ns = TICK_MS * (uint64_t)MS;
    const uint64_t now = lc_now_ns();
    begin_callback(7);
    age_callback(&s, ms);
    const uint64_t again = lc_watchdog_look(&s.watchdog, now);
    s.watchdog.settings.tick_ns = tick;
    end_work();
    return (again - now) / MS;
}

TEST(work_that_has_just_begun_is_looked_at_again_after_a_tick) { CHECK(look_at_work_of(0) == 35); }

TEST(work_that_goes_on_is_looked_at_again_after_the_delay) { CHECK(look_at_work_of(8) == DELAY_MS - 8); }

TEST(the_tick_is_below_two_fifths_of_the_threshold)
{
    CHECK(lc_watchdog_tick_ns(100, 20) == 35);
    CHECK(lc_watchdog_tick_ns(100, 10) == 10); /* asked for */
    CHECK(lc_watchdog_tick_ns(100, 60) == 60);
}

TEST(a_callback_past_the_threshold_is_a_stall_while_it_lasts)
{
    begin_callback(7);
    age_callback(&s, 150);
    look(&s);
    lc_slot *it = slot(&s, 0);
    CHECK(LC_LOAD(it->state) == LC_SLOT_STALL && LC_LOAD(it->level) == LC_LEVEL_STALL);
    CHECK(LC_LOAD(it->kind) == LC_ENDED_CALLBACK && LC_LOAD(it->end_ns) == 0);
    CHECK(it->callback.bytes == 7 && memcmp((char *)it + it->callback.offset, "handler", 7) == 0);
    CHECK(it->task.bytes == 6);
    end_work();
    CHECK(LC_LOAD(it->state) == LC_SLOT_ENDED);
    const uint64_t took = LC_LOAD(it->end_ns) - LC_LOAD(it->begin_ns);
    CHECK(took / MS == 150);
    CHECK(LC_LOAD(it->sample_count) == 1 && it->samples[0].epoch == LC_LOAD(it->epoch));
    CHECK(counted(&s, LC_COUNTER_stalls_recorded) == 1);
    LC_STORE(it->state, LC_SLOT_FREE);
}

TEST(an_unseen_stall_is_recorded_without_samples)
{
    const uint64_t before = counted(&s, LC_COUNTER_stalls_unsampled);
    begin_callback(7);
    age_callback(&s, 300);
    end_work();
    CHECK(LC_LOAD(slot(&s, 0)->state) == LC_SLOT_ENDED && LC_LOAD(slot(&s, 0)->sample_count) == 0);
    CHECK(counted(&s, LC_COUNTER_stalls_unsampled) == before + 1);
    LC_STORE(slot(&s, 0)->state, LC_SLOT_FREE);
}

TEST(short_callbacks_in_one_turn_are_one_stall)
{
    lc_turn_begin(stage_context(&s), s.lane);
    for (int i = 0; i < 1000; i++) {
        lc_callback_begin(s.lane, 8, 0);
        lc_callback_end(stage_context(&s), s.lane);
    }
    age_turn(&s, 200);
    look(&s);
    CHECK(LC_LOAD(slot(&s, 0)->kind) == LC_ENDED_TURN && LC_LOAD(slot(&s, 0)->state) == LC_SLOT_STALL);
    end_turn();
    look(&s);
    CHECK(LC_LOAD(slot(&s, 0)->state) == LC_SLOT_ENDED && LC_LOAD(slot(&s, 0)->turn_callbacks) == 1000);
    LC_STORE(slot(&s, 0)->state, LC_SLOT_FREE);
}

TEST(a_short_rest_of_a_turn_is_no_stall_beside_its_long_callback)
{
    const uint64_t before = counted(&s, LC_COUNTER_stalls_recorded);
    begin_callback(7);
    age_callback(&s, 150);
    end_callback();
    age_turn(&s, THRESHOLD_MS / 4);
    end_turn();
    look(&s);
    CHECK(counted(&s, LC_COUNTER_stalls_recorded) == before + 1);
    CHECK(LC_LOAD(slot(&s, 0)->kind) == LC_ENDED_CALLBACK);
    LC_STORE(slot(&s, 0)->state, LC_SLOT_FREE);
}

TEST(a_long_rest_of_a_turn_is_followed_as_its_long_callback_was)
{
    begin_callback(7);
    age_callback(&s, 150);
    look(&s);
    end_callback();
    look(&s);
    CHECK(LC_LOAD(slot(&s, 0)->kind) == LC_ENDED_CALLBACK && LC_LOAD(slot(&s, 0)->state) == LC_SLOT_ENDED);
    for (int i = 0; i < 4; i++) {
        lc_callback_begin(s.lane, 8, 0);
        age_callback(&s, 40);
        look(&s);
        lc_callback_end(stage_context(&s), s.lane);
    }
    CHECK(LC_LOAD(slot(&s, 1)->kind) == LC_ENDED_TURN || LC_LOAD(slot(&s, 1)->kind) == LC_ENDED_CALLBACK);
    end_turn();
    look(&s);
    const lc_slot *rest = slot(&s, 1);
    CHECK(LC_LOAD(rest->kind) == LC_ENDED_TURN && LC_LOAD(rest->state) == LC_SLOT_ENDED);
    CHECK(LC_LOAD(rest->turn_callbacks) == 4 && LC_LOAD(rest->sample_count) > 0);
    CHECK(LC_LOAD(rest->end_ns) - LC_LOAD(rest->begin_ns) >= 160 * (uint64_t)MS);
    CHECK(LC_LOAD(rest->longest_ns) < 150 * (uint64_t)MS);
    LC_STORE(slot(&s, 0)->state, LC_SLOT_FREE);
    LC_STORE(slot(&s, 1)->state, LC_SLOT_FREE);
}

TEST(a_part_of_a_turn_keeps_its_slot_when_a_short_stall_ends_it)
{
    lc_turn_begin(stage_context(&s), s.lane);
    for (int i = 0; i < 4; i++) {
        lc_callback_begin(s.lane, 8, 0);
        age_callback(&s, 40);
        look(&s);
        lc_callback_end(stage_context(&s), s.lane);
    }
    look(&s);
    CHECK(LC_LOAD(slot(&s, 0)->state) == LC_SLOT_STALL && LC_LOAD(slot(&s, 0)->kind) == LC_ENDED_TURN);
    const uint64_t serial = LC_LOAD(slot(&s, 0)->serial);
    lc_callback_begin(s.lane, 7, 0);
    age_callback(&s, 150); /* over before the next look */
    end_work();
    look(&s);
    CHECK(LC_LOAD(slot(&s, 0)->serial) == serial && LC_LOAD(slot(&s, 0)->kind) == LC_ENDED_TURN);
    CHECK(LC_LOAD(slot(&s, 0)->turn_callbacks) == 4 && LC_LOAD(slot(&s, 0)->sample_count) > 0);
    CHECK(LC_LOAD(slot(&s, 1)->kind) == LC_ENDED_CALLBACK && LC_LOAD(slot(&s, 1)->state) == LC_SLOT_ENDED);
    LC_STORE(slot(&s, 0)->state, LC_SLOT_FREE);
    LC_STORE(slot(&s, 1)->state, LC_SLOT_FREE);
}

TEST(the_samples_of_a_stalled_callback_stay_with_it)
{
    lc_turn_begin(stage_context(&s), s.lane);
    for (int i = 0; i < 4; i++) {
        lc_callback_begin(s.lane, 8, 0);
        age_callback(&s, 40);
        lc_callback_end(stage_context(&s), s.lane);
    }
    lc_callback_begin(s.lane, 7, 0);
    age_callback(&s, 150);
    look(&s);
    CHECK(LC_LOAD(slot(&s, 0)->kind) == LC_ENDED_CALLBACK);
    end_work();
    look(&s);
    CHECK(LC_LOAD(slot(&s, 0)->kind) == LC_ENDED_CALLBACK && LC_LOAD(slot(&s, 0)->sample_count) > 0);
    CHECK(LC_LOAD(slot(&s, 1)->kind) == LC_ENDED_TURN && LC_LOAD(slot(&s, 1)->sample_count) == 0);
    LC_STORE(slot(&s, 0)->state, LC_SLOT_FREE);
    LC_STORE(slot(&s, 1)->state, LC_SLOT_FREE);
}

TEST(what_was_suspected_before_granted_work_is_forgotten_after_it)
{
    const uint64_t rate = LC_LOAD(s.flight.header->tick_ns_q32);
    lc_turn_begin(stage_context(&s), s.lane);
    for (int i = 0; i < 9; i++) {
        lc_callback_begin(s.lane, 8, 0);
        age_callback(&s, 10);
        lc_callback_end(stage_context(&s), s.lane);
    }
    lc_callback_begin(s.lane, 7, 0);
    lc_lane_allow(s.lane, lc_ns_to_ticks(2000ull * MS, rate));
    age_callback(&s, 15);
    look(&s);
    CHECK(LC_LOAD(slot(&s, 0)->state) == LC_SLOT_STALL && LC_LOAD(slot(&s, 0)->kind) == LC_ENDED_TURN);
    age_callback(&s, 400);
    lc_callback_end(stage_context(&s), s.lane);
    lc_callback_begin(s.lane, 8, 0);
    age_callback(&s, 30);
    lc_callback_end(stage_context(&s), s.lane);
    look(&s);
    CHECK(LC_LOAD(slot(&s, 0)->state) == LC_SLOT_OPEN && LC_LOAD(slot(&s, 0)->level) == LC_LEVEL_NONE);
    end_turn();
    look(&s);
    CHECK(LC_LOAD(slot(&s, 0)->state) == LC_SLOT_FREE);
}

TEST(a_slot_of_a_turn_follows_its_long_callback)
{
    lc_turn_begin(stage_context(&s), s.lane);
    lc_callback_begin(s.lane, 8, 0);
    age_callback(&s, 30);
    look(&s);
    lc_callback_end(stage_context(&s), s.lane);
    lc_callback_begin(s.lane, 7, 0);
    look(&s);
    CHECK(LC_LOAD(slot(&s, 0)->kind) == LC_ENDED_TURN);
    age_callback(&s, 40);
    look(&s);
    CHECK(LC_LOAD(slot(&s, 0)->kind) == LC_ENDED_CALLBACK &&
          LC_LOAD(slot(&s, 0)->epoch) == LC_LOAD(s.lane->epoch));
    CHECK(slot(&s, 0)->callback.bytes == 7);
    end_work();
    CHECK(LC_LOAD(slot(&s, 0)->state) == LC_SLOT_FREE);
}

TEST(what_was_expected_is_no_stall_before_its_time)
{
    const uint64_t rate = LC_LOAD(s.flight.header->tick_ns_q32);
    const uint64_t before = counted(&s, LC_COUNTER_stalls_recorded);
    const uint64_t expected = counted(&s, LC_COUNTER_stalls_suppressed_expected);
    begin_callback(7);
    lc_lane_allow(s.lane, lc_ns_to_ticks(2000ull * MS, rate));
    age_callback(&s, 500);
    look(&s);
    CHECK(LC_LOAD(slot(&s, 0)->state) == LC_SLOT_OPEN);
    end_work();
    CHECK(counted(&s, LC_COUNTER_stalls_recorded) == before);
    CHECK(counted(&s, LC_COUNTER_stalls_suppressed_expected) == expected + 1);
    begin_callback(7);
    lc_lane_allow(s.lane, lc_ns_to_ticks(2000ull * MS, rate));
    age_callback(&s, 2500);
    end_work();
    CHECK(counted(&s, LC_COUNTER_stalls_recorded) == before + 1);
    LC_STORE(slot(&s, 0)->state, LC_SLOT_FREE);
}

TEST(a_threshold_is_as_configured_at_any_rate)
{
    lc_word *rate = &s.flight.header->tick_ns_q32;
    const uint64_t before = LC_LOAD(*rate);
    begin_callback(7);
    age_callback(&s, 150);
    LC_STORE(*rate, before - before / 20000u);
    look(&s);
    CHECK(slot(&s, 0)->threshold_ns == THRESHOLD_MS * (uint64_t)MS);
    CHECK(LC_LOAD(slot(&s, 0)->allowance_ns) == 0);
    LC_STORE(*rate, before);
    end_work();
    LC_STORE(slot(&s, 0)->state, LC_SLOT_FREE);
}

TEST(hang_and_anr_are_reached_while_it_lasts)
{
    uint32_t news = atomic_load(&s.watchdog.news);
    begin_callback(7);
    age_callback(&s, 1500);
    look(&s);
    CHECK(LC_LOAD(slot(&s, 0)->level) == LC_LEVEL_HANG && LC_LOAD(slot(&s, 0)->thread_count) == 2);
    CHECK(atomic_load(&s.watchdog.news) != news);
    news = atomic_load(&s.watchdog.news);
    age_callback(&s, 4000);
    look(&s);
    CHECK(LC_LOAD(slot(&s, 0)->level) == LC_LEVEL_ANR && atomic_load(&s.watchdog.news) != news);
    end_work();
    LC_STORE(slot(&s, 0)->state, LC_SLOT_FREE);
}

static void callback_moves_on(void)
{
    lc_callback_end(stage_context(&s), s.lane);
    lc_callback_begin(s.lane, 8, 0);
}

TEST(a_sample_of_a_callback_that_moved_on_is_dropped)
{
    const uint64_t before = counted(&s, LC_COUNTER_samples_dropped_moved);
    begin_callback(7);
    age_callback(&s, 60);
    s.source.during_walk = callback_moves_on;
    look(&s);
    s.source.during_walk = NULL;
    CHECK(LC_LOAD(slot(&s, 0)->sample_count) == 0);
    CHECK(counted(&s, LC_COUNTER_samples_dropped_moved) == before + 1);
    end_work();
}

TEST(the_scene_of_a_stall_is_that_of_its_second_sample)
{
    begin_callback(7);
    LC_STORE(s.lane->scene, 8);
    age_callback(&s, 60);
    look(&s);
    lc_slot *it = slot(&s, 0);
    CHECK(it->scene.bytes == 5);
    LC_STORE(s.lane->scene, 9);
    s.watchdog.watches[0].next_sample_ns = 0;
    look(&s);
    CHECK(LC_LOAD(it->sample_count) == 2 && it->scene.bytes == 8);
    LC_STORE(s.lane->scene, 8);
    s.watchdog.watches[0].next_sample_ns = 0;
    look(&s);
    CHECK(LC_LOAD(it->sample_count) == 3 && it->scene.bytes == 8);
    LC_STORE(s.lane->scene, 0);
    end_work();
}

TEST(a_long_stall_is_thinned_and_stays_covered)
{
    begin_callback(7);
    age_callback(&s, 30);
    const uint64_t first = lc_now_ns();
    for (uint64_t i = 0; i < 3u * LC_SAMPLE_MAX; i++) {
        s.source.serial = 1 + i % 5;
        s.watchdog.watches[0].next_sample_ns = 0;
        look(&s);
        CHECK(LC_LOAD(slot(&s, 0)->sample_count) <= LC_SAMPLE_MAX);
    }
    const lc_slot *it = slot(&s, 0);
    const uint64_t count = LC_LOAD(it->sample_count);
    CHECK(LC_LOAD(it->interval_ns) > 10u * MS && count > LC_SAMPLE_MAX / 2);
    CHECK(it->samples[0].at_ns - first < MS);
    for (uint64_t i = 1; i < count; i++) {
        CHECK(it->samples[i].at_ns > it->samples[i - 1].at_ns);
    }
    end_work();
    s.source.serial = 1;
}

TEST(stalls_that_find_no_slot_are_counted)
{
    for (uint64_t i = 0; i < LC_SLOT_COUNT + 3u; i++) {
        begin_callback(7);
        age_callback(&s, 200);
        end_work();
    }
    CHECK(counted(&s, LC_COUNTER_stalls_dropped_no_slot) == 3);
    for (uint64_t i = 0; i < LC_SLOT_COUNT; i++) {
        CHECK(LC_LOAD(slot(&s, i)->state) == LC_SLOT_ENDED);
        LC_STORE(slot(&s, i)->state, LC_SLOT_FREE);
    }
}

TEST(ended_stalls_beyond_the_ring_are_counted)
{
    const uint64_t before = counted(&s, LC_COUNTER_stalls_dropped_ring_full);
    for (uint64_t i = 0; i < LC_ENDED_COUNT + 5u; i++) {
        begin_callback(7);
        age_callback(&s, 200);
        end_callback();
        end_turn();
    }
    look(&s);
    CHECK(counted(&s, LC_COUNTER_stalls_dropped_ring_full) == before + 5);
    for (uint64_t i = 0; i < LC_SLOT_COUNT; i++) {
        LC_STORE(slot(&s, i)->state, LC_SLOT_FREE);
    }
}

TEST(idle_lanes_let_the_watchdog_park)
{
    const uint64_t now = lc_now_ns();
    CHECK(lc_watchdog_look(&s.watchdog, now) != LC_NO_DEADLINE);
    CHECK(lc_watchdog_look(&s.watchdog, now + 2000ull * MS) == LC_NO_DEADLINE);
}

TEST(a_closed_lane_is_kept_until_its_last_stall_was_read)
{
    memcpy(s.lane->thread_name, "first", 6);
    begin_callback(7);
    age_callback(&s, 150);
    end_callback();
    end_turn();
    LC_RELEASE(s.lane->state, LC_LANE_CLOSED);
    CHECK(!lc_lane_is_done(s.lane));
    look(&s);
    CHECK(lc_lane_is_done(s.lane));
    CHECK(LC_LOAD(slot(&s, 0)->state) == LC_SLOT_ENDED && strcmp(slot(&s, 0)->thread_name, "first") == 0);
    LC_RELEASE(s.lane->state, LC_LANE_ACTIVE);
    CHECK(!lc_lane_is_done(s.lane));
    LC_STORE(slot(&s, 0)->state, LC_SLOT_FREE);
}

TEST(a_closed_lane_asks_for_nothing)
{
    LC_RELEASE(s.lane->state, LC_LANE_CLOSED);
    CHECK(look(&s) == LC_NO_DEADLINE);
    LC_RELEASE(s.lane->state, LC_LANE_ACTIVE);
}

int main(void)
{
    stage_open_still(&s);
    run_tests();
    stage_close(&s);
    return 0;
}
