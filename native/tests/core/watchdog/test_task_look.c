/* When tasks are looked at: the looks are scripted, and so is the time. */
#include "core/watchdog/watch_state.h"
#include "tests/core/lane/bench_lane.h"

#define SECOND UINT64_C(1000000000)

static stage s;
static uint64_t now_ns;
static lc_look_result results[8];
static unsigned looks;

static lc_look_result scripted_look(lc_frame_source *self, lc_slot_writer *into, uint64_t at_ns)
{
    (void)self;
    CHECK(into->slot != NULL && LC_LOAD(into->slot->serial) == 0 && at_ns == now_ns);
    return results[looks++];
}

static void begin(void)
{
    stage_open(&s);
    s.source.source.look = scripted_look;
    s.watchdog.settings.look_ns = 5 * SECOND;
    now_ns = 100 * SECOND;
    looks = 0;
    for (size_t i = 0; i < sizeof results / sizeof *results; i++) {
        results[i] = LC_LOOK_IS_OVER;
    }
}

static void turn(void) { LC_STORE(s.lane->turn_epoch, LC_LOAD(s.lane->turn_epoch) + 2); }

static uint64_t after(uint64_t seconds)
{
    now_ns += seconds * SECOND;
    return lc_task_look_next(&s.watchdog, now_ns);
}

static uint64_t serial(uint64_t half)
{
    return half < LC_LOAD(s.flight.header->looks.used) ? LC_LOAD(lc_flight_look_slot(&s.flight, half)->serial)
                                                       : 0;
}

TEST(a_loop_that_turned_and_rests_is_looked_at_twice)
{
    begin();
    CHECK(after(0) == now_ns + 5 * SECOND && looks == 0);
    CHECK(after(5) == now_ns + 5 * SECOND && looks == 1 && serial(0) == 1);
    CHECK(after(5) == LC_NO_DEADLINE && looks == 2 && serial(1) == 2);
    CHECK(after(1000) == LC_NO_DEADLINE && looks == 2);
    turn();
    CHECK(after(0) == now_ns + 5 * SECOND && looks == 2);
    CHECK(after(5) == now_ns + 5 * SECOND && looks == 3 && serial(0) == 3);
    stage_close(&s);
}

TEST(a_loop_that_turns_all_the_time_is_looked_at_every_five_seconds)
{
    begin();
    for (int i = 0; i < 26; i++) {
        turn();
        CHECK(after(1) != LC_NO_DEADLINE);
    }
    CHECK(looks == 5);
    stage_close(&s);
}

TEST(a_long_look_is_made_in_parts_and_one_that_finds_something_rings)
{
    begin();
    results[0] = results[1] = LC_LOOK_GOES_ON;
    results[2] = LC_LOOK_FOUND;
    (void)after(0);
    const uint32_t news = atomic_load(&s.watchdog.news);
    CHECK(after(5) < now_ns + SECOND && looks == 1 && serial(0) == 0);
    CHECK(after(0) < now_ns + SECOND && looks == 2 && serial(0) == 0);
    CHECK(atomic_load(&s.watchdog.news) == news);
    CHECK(after(0) == now_ns + 5 * SECOND && looks == 3 && serial(0) == 1);
    CHECK(atomic_load(&s.watchdog.news) != news);
    stage_close(&s);
}

TEST(what_has_no_tasks_leaves_no_look)
{
    begin();
    results[0] = LC_LOOK_NOTHING;
    (void)after(0);
    CHECK(after(5) == now_ns + 5 * SECOND && looks == 1 && serial(0) == 0);
    s.watchdog.settings.look_ns = 0;
    CHECK(after(5) == LC_NO_DEADLINE && looks == 1);
    stage_close(&s);
}

int main(void) { return run_tests(); }
