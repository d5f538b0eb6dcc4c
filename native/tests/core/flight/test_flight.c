/* The flight file's making: what is set aside, what is refused, what stays when the descriptor is lost. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/core/lane/bench_lane.h"

static stage s;
static int refusal;

/* In the C library's place: as a seccomp filter answers. */
int posix_fallocate(int fd, off_t offset, off_t bytes)
{
    return refusal ? refusal : syscall(SYS_fallocate, fd, 0, offset, bytes) == 0 ? 0 : errno;
}

static uint64_t available = UINT64_C(1) << 30;

int fstatvfs(int fd, struct statvfs *facts)
{
    (void)fd;
    *facts = (struct statvfs){.f_frsize = 4096, .f_blocks = 1u << 20, .f_bavail = available / 4096u};
    return 0;
}

static uint64_t blocks(void)
{
    struct stat facts;
    CHECK(stat(s.path, &facts) == 0 && (facts.st_mode & 0777) == 0600);
    return (uint64_t)facts.st_blocks * 512u;
}

TEST(a_new_file_has_room_for_a_stall_and_grows)
{
    const uint64_t before = blocks();
    CHECK(before > LC_LANE_BYTES + LC_SLOT_BYTES && before < s.flight.bytes / 8);
    CHECK(lc_flight_claim(&s.flight, LC_SECTION_LANES, 1) != NULL);
    CHECK(lc_flight_claim(&s.flight, LC_SECTION_LANES, 2) != NULL);
    CHECK(blocks() >= before + 2 * LC_LANE_BYTES);
    CHECK(lc_flight_claim(&s.flight, LC_SECTION_LANES, LC_LANE_COUNT) == NULL);
}

TEST(room_is_made_by_writing_where_it_may_not_be_set_aside)
{
    const int refusals[] = {EPERM, EACCES, ENOSYS, EOPNOTSUPP};
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        const uint64_t before = blocks();
        refusal = refusals[i];
        CHECK(lc_flight_claim(&s.flight, LC_SECTION_LANES, 3 + i) != NULL);
        CHECK(blocks() >= before + LC_LANE_BYTES);
    }
    refusal = ENOSPC;
    CHECK(lc_flight_claim(&s.flight, LC_SECTION_LANES, 3 + sizeof refusals / sizeof *refusals) == NULL);
    refusal = 0;
}

TEST(it_is_made_and_grows_only_where_what_it_needs_leaves_as_much)
{
    char path[sizeof s.path + 8];
    lc_flight other;
    (void)snprintf(path, sizeof path, "%s.other", s.path);
    available = (UINT64_C(5) << 20) - 4096u;
    CHECK(lc_flight_create(&other, path) == ENOSPC && access(path, F_OK) != 0);
    CHECK(lc_flight_claim(&s.flight, LC_SECTION_SLOTS, 0) != NULL); /* it has this one */
    CHECK(lc_flight_claim(&s.flight, LC_SECTION_SLOTS, 3) == NULL &&
          lc_flight_claim(&s.flight, LC_SECTION_LANES, 99) == NULL);
    available += 4096u;
    CHECK(lc_flight_create(&other, path) == 0 && lc_flight_claim(&s.flight, LC_SECTION_SLOTS, 3) != NULL);
    lc_flight_close(&other, true);
    CHECK(unlink(path) == 0);
}

TEST(a_file_that_is_there_is_not_taken_over)
{
    lc_flight other;
    CHECK(lc_flight_create(&other, s.path) == EEXIST);
    CHECK(lc_flight_create(&other, "/nowhere/at/all.flight") == ENOENT);
}

TEST(facts_that_are_too_long_are_refused)
{
    static char text[LC_FACTS_BYTES + 1];
    CHECK(lc_flight_set_facts(&s.flight, "{}", 2));
    CHECK(!lc_flight_set_facts(&s.flight, text, sizeof text));
    CHECK(LC_LOAD(s.flight.header->sections[LC_SECTION_FACTS].used) == 2);
}

TEST(ticks_are_nanoseconds_of_the_monotonic_clock)
{
    const lc_instant now = lc_clock_pair();
    const uint64_t ns = lc_flight_ns(&s.flight, now.ticks);
    const uint64_t difference = ns > now.ns ? ns - now.ns : now.ns - ns;
    /* a first rate is good to a hundredth, and the file may be older than it seems where this was not run */
    CHECK(difference < 1000000 + (now.ns - s.flight.paired.ns) / 100u);
    CHECK(lc_flight_ns(&s.flight, s.flight.paired.ticks) == s.flight.paired.ns);
    CHECK(lc_flight_ns(&s.flight, 0) < s.flight.paired.ns);
}

TEST(a_machine_that_was_suspended_is_counted_once)
{
    const lc_instant now = lc_clock_pair();
    const uint64_t slept = s.flight.slept_ns;
    /* the clocks are read one after the other */
    CHECK(!lc_flight_note_clocks(&s.flight, now, slept + 900000));
    CHECK(counted(&s, LC_COUNTER_suspends) == 0);
    CHECK(lc_flight_note_clocks(&s.flight, now, slept + UINT64_C(3000000000)));
    CHECK(!lc_flight_note_clocks(&s.flight, now, slept + UINT64_C(3000000000)));
    CHECK(counted(&s, LC_COUNTER_suspends) == 1);
    CHECK(s.flight.header->anchor_monotonic_ns == now.ns || lc_clock_chosen == LC_CLOCK_MONOTONIC);
}

TEST(what_the_program_closed_is_found_by_its_path)
{
    const int theirs = s.flight.file.fd;
    const int next = dup(STDERR_FILENO);
    const int reader = open(s.path, O_RDONLY);
    CHECK(dup2(reader, theirs) == theirs && close(reader) == 0);
    CHECK(lc_flight_claim(&s.flight, LC_SECTION_SLOTS, 1) != NULL);
    CHECK(dup2(STDERR_FILENO, theirs) == theirs);
    CHECK(lc_flight_claim(&s.flight, LC_SECTION_LANES, 8) != NULL);
    CHECK(lc_flight_claim(&s.flight, LC_SECTION_SLOTS, 2) != NULL);
    CHECK(close(next) == 0 && dup(STDERR_FILENO) == next && close(next) == 0);
    CHECK(unlink(s.path) == 0 && lc_flight_claim(&s.flight, LC_SECTION_LANES, 9) == NULL);
    const int another = open(s.path, O_RDWR | O_CREAT | O_EXCL, 0600);
    CHECK(lc_flight_claim(&s.flight, LC_SECTION_LANES, 9) == NULL && lseek(another, 0, SEEK_END) == 0);
    CHECK(lc_flight_claim(&s.flight, LC_SECTION_LANES, 8) != NULL);
    lc_flight_close(&s.flight, true);
    CHECK(fcntl(theirs, F_GETFD) >= 0);
    close(theirs);
    close(another);
}

/* Of those that came between lc_storing_begin and lc_storing_end when the engine stopped (module/agent.h). */
TEST(a_thread_ends_what_it_began_after_its_engine_and_in_the_next)
{
    static stage begun;
    stage_open(&begun);
    const lc_lane_context *context = stage_context(&begun);
    lc_lane *lane = begun.lane;
    lc_turn_begin(context, lane);
    lc_callback_begin(lane, 7, 0);
    begun.flight.is_stored_to = true;
    stage_close(&begun);
    lc_callback_end(context, lane);
    lc_turn_end(context, lane);
    lc_turn_begin(context, lane);
    lc_callback_begin(lane, 7, 0);
    stage_open(&begun);
    lc_callback_end(context, lane);
    lc_turn_end(context, lane);
    stage_close(&begun);
}

int main(void)
{
    stage_open(&s);
    run_tests();
    stage_close(&s);
    return 0;
}
