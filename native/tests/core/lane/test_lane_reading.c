/* Which of a thread's readings a stall is reckoned from. */
#include "core/lane/lane_reading.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/core/lane/still_stage.h"
#include "core/host/host_view.h"

#define MILLI UINT64_C(1000000)

static uint64_t own_tid(void) { return (uint64_t)syscall(SYS_gettid); }

static lc_lane_readings of_times(uint64_t latest, uint64_t callback, uint64_t turn)
{
    return (lc_lane_readings){
        .latest = {.at_ns = latest}, .before_callback = {.at_ns = callback}, .before_turn = {.at_ns = turn}};
}

static uint64_t before(lc_lane_readings readings, uint64_t begin_ns)
{
    const lc_lane_reading *found = lc_lane_readings_before(&readings, begin_ns);
    return found == NULL ? 0 : found->at_ns;
}

TEST(the_last_reading_before_the_begin_is_taken)
{
    const lc_lane_readings readings = of_times(3000 * MILLI, 2000 * MILLI, 1000 * MILLI);
    CHECK(before(readings, 3500 * MILLI) == 3000 * MILLI);
    CHECK(before(readings, 2050 * MILLI) == 2000 * MILLI);
    CHECK(before(readings, 1050 * MILLI) == 1000 * MILLI);
    CHECK(before(readings, 900 * MILLI) == 0);
    CHECK(before(of_times(0, 0, 0), 900 * MILLI) == 0);
}

TEST(one_just_after_the_begin_stands_for_an_old_one)
{
    CHECK(before(of_times(1000 * MILLI + 1, 0, 950 * MILLI), 1000 * MILLI) == 950 * MILLI);
    CHECK(before(of_times(1000 * MILLI + 1, 0, 500 * MILLI), 1000 * MILLI) == 1000 * MILLI + 1);
    CHECK(before(of_times(1002 * MILLI, 0, 500 * MILLI), 1000 * MILLI) == 500 * MILLI);
    CHECK(before(of_times(1000 * MILLI + 1, 0, 0), 1000 * MILLI) == 1000 * MILLI + 1);
}

TEST(the_reading_before_a_turn_is_kept_while_the_turn_lasts)
{
    lc_lane_readings readings = {0};
    CHECK(lc_lane_readings_take(&readings, own_tid(), 0, 0));
    const uint64_t idle = readings.latest.at_ns;
    const uint64_t turn = lc_now_ns();
    for (int i = 0; i < 10; i++) {
        CHECK(lc_lane_readings_take(&readings, own_tid(), turn, 0));
    }
    CHECK(before(readings, turn) == idle);
    const uint64_t last = readings.latest.at_ns;
    const uint64_t callback = lc_now_ns();
    for (int i = 0; i < 10; i++) {
        CHECK(lc_lane_readings_take(&readings, own_tid(), turn, callback));
    }
    CHECK(before(readings, callback) == last && before(readings, turn) == idle);
    CHECK(readings.latest.sched.on_cpu_ns >= readings.before_turn.sched.on_cpu_ns);
    lc_lane_readings_close(&readings);
}

TEST(another_thread_begins_again_and_one_that_is_gone_has_none)
{
    lc_lane_readings readings = {0};
    CHECK(lc_lane_readings_take(&readings, own_tid(), 0, 0));
    CHECK(!lc_lane_readings_take(&readings, UINT32_MAX, 0, 0));
    CHECK(before(readings, UINT64_MAX / 2) == 0);
    lc_lane_readings_close(&readings);
}

TEST(the_host_is_read_again_after_the_program_closed_its_files)
{
    const unsigned descriptors = open_descriptors();
    lc_host_view view = {0};
    lc_host_entry first, second;
    lc_host_view_read(&view, &first);
    CHECK((first.told & LC_HOST_PROCESS_CPU) && first.process_cpu_ns > 0);
    for (int i = 0; i < LC_HOST_FILES; i++) {
        if (view.files[i].fd > 0) {
            close(view.files[i].fd);
        }
    }
    lc_host_view_read(&view, &second);
    CHECK(second.told == first.told && second.at_ns > first.at_ns);
    CHECK(second.process_cpu_ns >= first.process_cpu_ns && second.system_total_ns >= first.system_total_ns);
    CHECK(second.system_busy_ns <= second.system_total_ns &&
          second.system_stolen_ns <= second.system_busy_ns);
    lc_host_view_close(&view);
    CHECK(open_descriptors() == descriptors);
}

TEST(hosts_of_a_long_stall_are_thinned_and_keep_the_first)
{
    static uint64_t memory[LC_SLOT_BYTES / 8];
    lc_slot *slot = (lc_slot *)memory;
    lc_slot_writer writer;
    lc_slot_writer_begin(&writer, slot);
    writer.host_interval_ns = 1;
    for (uint64_t at = 1; at <= 200; at++) {
        if (LC_LOAD(slot->host_count) == 0 ||
            at >= slot->hosts[LC_LOAD(slot->host_count) - 1u].at_ns + writer.host_interval_ns) {
            const lc_host_entry entry = {.at_ns = at};
            lc_slot_put_host(&writer, &entry);
        }
    }
    const uint64_t count = LC_LOAD(slot->host_count);
    CHECK(count > LC_HOST_MAX / 2 && count <= LC_HOST_MAX && slot->hosts[0].at_ns == 1);
    for (uint64_t i = 1; i < count; i++) {
        CHECK(slot->hosts[i].at_ns > slot->hosts[i - 1].at_ns &&
              slot->hosts[i].at_ns - slot->hosts[i - 1].at_ns <= 16);
    }
    CHECK(slot->hosts[count - 1u].at_ns > 200 - 16);
}

static lc_slot *thinned;
static uint64_t seen_meanwhile;

/* The first store to the samples behind the slot's first pages comes here. */
static void looks_meanwhile(int number)
{
    (void)number;
    seen_meanwhile = LC_LOAD(thinned->sample_count);
    (void)mprotect(thinned, LC_SLOT_BYTES, PROT_READ | PROT_WRITE);
}

TEST(samples_that_are_being_thinned_are_no_readers)
{
    const struct sigaction wanted = {.sa_handler = looks_meanwhile};
    struct sigaction before;
    lc_slot_writer writer;
    thinned = mmap(NULL, LC_SLOT_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    lc_slot_writer_begin(&writer, thinned);
    for (uint64_t at = 1; at <= LC_SAMPLE_MAX; at++) {
        const lc_sample_entry entry = {.at_ns = at};
        CHECK(lc_slot_put_sample(&writer, &entry));
    }
    CHECK(sigaction(SIGSEGV, &wanted, &before) == 0);
    CHECK(mprotect((char *)thinned + 4 * 4096, LC_SLOT_BYTES - 4 * 4096, PROT_READ) == 0);
    lc_slot_thin_samples(&writer);
    CHECK(sigaction(SIGSEGV, &before, NULL) == 0);
    CHECK(seen_meanwhile == 1 && LC_LOAD(thinned->sample_count) == LC_SAMPLE_MAX / 2);
    CHECK(thinned->samples[1].at_ns == 3 &&
          thinned->samples[LC_SAMPLE_MAX / 2 - 1].at_ns == LC_SAMPLE_MAX - 1);
    munmap(thinned, LC_SLOT_BYTES);
}

TEST(what_was_never_read_is_no_reading_even_right_after_the_boot)
{
    static uint64_t memory[LC_SLOT_BYTES / 8];
    lc_slot_writer writer;
    lc_host_view view = {0};
    lc_slot_writer_begin(&writer, (lc_slot *)memory);
    lc_host_watch_at_end(&view, &writer, 1);
    CHECK(LC_LOAD(writer.slot->host_count) == 1 && writer.slot->hosts[0].at_ns != 0);
    lc_host_view_close(&view);
}

/* ---- by the watchdog ---------------------------------------------------------------------------- */

static stage s;

static void a_stall_knows_its_thread_and_host_from_before(void)
{
    look(&s); /* the lane is idle */
    const uint64_t idle_ns = s.watchdog.watches[0].readings.latest.at_ns;
    CHECK(idle_ns != 0 && LC_LOAD(s.lane->on_cpu_ns) > 0);
    lc_turn_begin(stage_context(&s), s.lane);
    lc_callback_begin(s.lane, 7, 0);
    look(&s);
    const uint64_t begin_ns = lc_flight_ns(&s.flight, LC_LOAD(s.lane->begin));
    const uint64_t until = lc_now_ns() + DELAY_MS * MS;
    lc_watchdog_look(&s.watchdog, until);
    const lc_slot *it = slot(&s, 0);
    CHECK(LC_LOAD(it->before_at_ns) >= idle_ns && LC_LOAD(it->before_at_ns) <= begin_ns + 1000);
    CHECK(LC_LOAD(it->before_on_cpu_ns) > 0 && LC_LOAD(it->host_count) == 1);
    age_callback(&s, 200);
    lc_callback_end(stage_context(&s), s.lane);
    lc_turn_end(stage_context(&s), s.lane);
    look(&s);
    CHECK(LC_LOAD(it->state) == LC_SLOT_ENDED && LC_LOAD(it->host_count) == 2);
    CHECK(it->hosts[1].at_ns > it->hosts[0].at_ns);
    LC_STORE(slot(&s, 0)->state, LC_SLOT_FREE);
}

static void stall(void)
{
    lc_turn_begin(stage_context(&s), s.lane);
    lc_callback_begin(s.lane, 7, 0);
    look(&s);
    lc_watchdog_look(&s.watchdog, lc_now_ns() + 2 * DELAY_MS * MS);
    age_callback(&s, 200);
    lc_callback_end(stage_context(&s), s.lane);
    lc_turn_end(stage_context(&s), s.lane);
    look(&s);
    CHECK(LC_LOAD(slot(&s, 0)->state) == LC_SLOT_ENDED);
    LC_STORE(slot(&s, 0)->state, LC_SLOT_FREE);
}

static void stalls_come_and_go_and_descriptors_stay(void)
{
    const unsigned descriptors = open_descriptors();
    const uint64_t samples = counted(&s, LC_COUNTER_samples_taken);
    for (int i = 0; i < 20; i++) {
        stall();
        CHECK(open_descriptors() == descriptors);
    }
    CHECK(counted(&s, LC_COUNTER_samples_taken) >= samples + 20);
}

static void the_program_may_close_all_descriptors(void)
{
    lc_thread_view *view = &s.watchdog.watches[0].view;
    lc_thread_reading reading;
    const int theirs = view->files[LC_VIEW_STAT].fd;
    for (int fd = 512; fd < 1024; fd++) {
        close(fd);
    }
    CHECK(dup2(STDERR_FILENO, theirs) == theirs);
    stall();
    lc_thread_view_read(view, 0, true, &reading);
    CHECK(reading.complete && reading.sched.on_cpu_ns > 0);
    CHECK(fcntl(theirs, F_GETFD) >= 0 && close(theirs) == 0);
}

static void a_watchdog_that_is_closed_holds_no_descriptor(unsigned descriptors)
{
    CHECK(s.watchdog.readings_open == 1 && s.watchdog.host.is_open);
    CHECK(open_descriptors() > descriptors + 1);
    stage_close(&s);
    CHECK(open_descriptors() == descriptors);
}

int main(void)
{
    stop_clock();
    run_tests();
    const unsigned descriptors = open_descriptors();
    stage_open_still(&s);
    a_stall_knows_its_thread_and_host_from_before();
    stalls_come_and_go_and_descriptors_stay();
    the_program_may_close_all_descriptors();
    a_watchdog_that_is_closed_holds_no_descriptor(descriptors);
    return 0;
}
