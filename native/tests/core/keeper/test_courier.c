/* The courier rings, starts a keeper and writes its texts, as the hour and the page say; its thread comes
 * when it is asked for and goes. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/keeper/courier.h"
#include "tests/core/clock/still_clock.h"
#include "tests/core/lane/bench_lane.h"

#define SECOND UINT64_C(1000000000)

static stage s;
static lc_courier courier;
static char bell[96], mark[96], nothing[] = "/bin/true", no_file[] = "/no/such/file";

static void use(char *const file)
{
    char *const argv[] = {file, NULL}, *const envp[] = {NULL};
    const lc_keeper_paths paths = {mark, bell, ""};
    lc_keeper_words *const words = lc_keeper_words_copy(argv, envp, &paths);
    CHECK(words != NULL && lc_keeper_words_equal(words, words));
    free(atomic_exchange(&courier.words, words));
}

/* A fresh courier, no bell and no mark. These stories say what the time is; that of the machine stands, so that what is
 * started is waited for however late it is run. */
static void begin(char *const file)
{
    stop_clock();
    unlink(bell);
    unlink(mark);
    use(file);
    lc_courier_open(&courier, &s.flight);
    LC_STORE(s.flight.header->takes, LC_TAKES_KEEPER);
    lc_slot *const first = lc_flight_claim(&s.flight, LC_SECTION_SLOTS, 0);
    LC_STORE(first->serial, 1);
    LC_STORE(first->state, LC_SLOT_ENDED);
    LC_STORE(s.flight.keeper->taken[0], 0);
}

static int make_bell(void)
{
    CHECK(mkfifo(bell, 0600) == 0);
    return open(bell, O_RDONLY | O_NONBLOCK);
}

/* The mark's time is what keeps two processes apart; these stories have their own clock. */
static void age_mark(void)
{
    const struct timespec long_ago[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    CHECK(utimensat(AT_FDCWD, mark, long_ago, 0) == 0 || errno == ENOENT);
}

static uint64_t started(void) { return counted(&s, LC_COUNTER_keepers_started); }
static uint64_t refused(void) { return counted(&s, LC_COUNTER_keepers_refused); }
static void wish(void) { atomic_fetch_add(&courier.asked, 1); }

static void ask_at(uint64_t ns)
{
    wish();
    (void)lc_courier_look(&courier, ns);
}

TEST(nothing_to_do_is_nothing_done)
{
    begin(nothing);
    CHECK(!lc_courier_look(&courier, SECOND) && started() == 0);
}

TEST(starts_become_rare_while_none_hears)
{
    begin(nothing);
    const uint64_t at[] = {1, 3, 6, 10, 11, 17, 20, 21, 27, 41, 47}; /* seconds */
    const uint64_t count[] = {1, 1, 2, 2, 2, 3, 3, 3, 3, 4, 4};
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        wish();
        CHECK(lc_courier_look(&courier, at[i] * SECOND));
        CHECK(started() == count[i]);
        age_mark();
    }
}

TEST(nothing_is_started_below_another_root_or_for_another_user)
{
    const uint64_t before = started();
    begin(nothing);
    courier.root.inode++;
    ask_at(SECOND);
    CHECK(started() == before && atomic_load(&courier.outcome) == EPERM);
    courier.root.inode--;
    if (geteuid() == 0) {
        CHECK(seteuid(1) == 0);
        ask_at(2 * SECOND);
        CHECK(seteuid(0) == 0 && started() == before && atomic_load(&courier.outcome) == EAGAIN);
    }
    ask_at(3 * SECOND);
    CHECK(started() == before + 1);
    age_mark();
}

TEST(after_one_that_ended_well_the_next_is_started_at_once)
{
    const uint64_t before = started();
    begin(nothing);
    for (uint64_t at = 1; at < 4; at++) {
        wish();
        CHECK(lc_courier_look(&courier, at * SECOND) && started() == before + at);
        CHECK(unlink(mark) == 0);
    }
}

TEST(what_is_owed_is_rung_for_again)
{
    begin(nothing);
    const int ear = make_bell();
    const uint64_t at[] = {1, 2, 3, 6, 7, 14, 15}; /* after 2, 4, 8 seconds */
    const ssize_t rings[] = {1, 1, 2, 2, 3, 3, 4};
    ssize_t heard = 0;
    char bytes[8];
    const uint64_t before = started();
    wish();
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        (void)lc_courier_look(&courier, at[i] * SECOND);
        const ssize_t got = read(ear, bytes, sizeof bytes);
        heard += got > 0 ? got : 0;
        CHECK(heard == rings[i]);
    }
    LC_STORE(s.flight.keeper->taken[0], 1);
    CHECK(!lc_courier_is_owed(&courier));
    (void)lc_courier_look(&courier, 1000 * SECOND);
    CHECK(read(ear, bytes, sizeof bytes) <= 0 && courier.next_ring_ns == LC_NO_DEADLINE);
    CHECK(started() == before);
    close(ear);
}

TEST(what_cannot_start_is_no_keeper_on_its_way)
{
    begin(no_file);
    const uint64_t before = refused();
    for (uint64_t at = 1; at < 4; at++) {
        ask_at(at * SECOND);
        CHECK(atomic_load(&courier.outcome) == ENOENT);
    }
    CHECK(refused() == before + 1u);
}

static unsigned handed_back;

static bool take_back(void)
{
    handed_back++;
    return handed_back > 1u; /* the first time there is no thread for it */
}

static void look_at(const uint64_t *at, const unsigned *count, size_t looks)
{
    handed_back = 0;
    courier.take_over = take_back;
    for (size_t i = 0; i < looks; i++) {
        ask_at(at[i] * SECOND);
        CHECK(handed_back == count[i]);
        age_mark();
    }
    courier.take_over = NULL;
}

TEST(where_none_can_start_the_program_is_told_until_it_has_heard)
{
    const uint64_t at[] = {1, 2, 3};
    const unsigned told[] = {1, 2, 2};
    begin(no_file);
    look_at(at, told, sizeof at / sizeof *at);
}

TEST(where_none_is_to_be_started_one_that_is_there_is_rung)
{
    char none[] = "";
    const uint64_t before = started();
    begin(none);
    ask_at(SECOND);
    CHECK(atomic_load(&courier.outcome) == EPERM && started() == before && access(mark, F_OK) != 0);
    const int ear = make_bell();
    ask_at(2 * SECOND);
    CHECK(atomic_load(&courier.outcome) == 0);
    close(ear);
}

TEST(where_those_that_start_say_nothing_the_program_is_told)
{
    const uint64_t at[] = {1, 7, 20, 21, 22, 40};
    const unsigned count[] = {0, 0, 0, 1, 2, 2};
    begin(nothing);
    look_at(at, count, sizeof at / sizeof *at);
}

TEST(a_keeper_that_hears_and_does_nothing_was_stopped)
{
    const uint64_t at[] = {1, 30, 60, 61, 62, 100};
    const unsigned count[] = {0, 0, 0, 1, 2, 2};
    begin(nothing);
    const int ear = make_bell();
    look_at(at, count, sizeof at / sizeof *at);
    CHECK(atomic_load(&courier.refusal) == EBUSY);
    close(ear);
}

TEST(a_keeper_that_works_is_waited_for)
{
    const uint64_t at[] = {1, 61, 90, 120}, later[] = {200, 300, 400};
    const unsigned none[] = {0, 0, 0, 0};
    begin(nothing);
    const int ear = make_bell();
    LC_STORE(s.flight.keeper->beat_ns, 60 * SECOND);
    look_at(at, none, sizeof at / sizeof *at);
    LC_STORE(s.flight.keeper->taken[0], 1); /* nothing is to be done */
    look_at(later, none, sizeof later / sizeof *later);
    LC_STORE(s.flight.keeper->beat_ns, 0);
    close(ear);
}

TEST(a_keeper_that_did_something_and_is_gone_is_waited_for_again)
{
    const uint64_t at[] = {101, 120, 121};
    const unsigned count[] = {0, 0, 1};
    begin(nothing);
    ask_at(SECOND);
    LC_STORE(s.flight.keeper->beat_ns, 90 * SECOND);
    age_mark();
    look_at(at, count, sizeof at / sizeof *at);
    LC_STORE(s.flight.keeper->beat_ns, 0);
}

TEST(what_the_program_judges_itself_is_not_the_couriers)
{
    lc_slot *const slot = lc_flight_slot(&s.flight, 0);
    begin(no_file);
    LC_STORE(s.flight.header->takes, LC_TAKES_DRAIN);
    LC_STORE(slot->state, LC_SLOT_ENDED);
    CHECK(!lc_courier_is_owed(&courier));
    const uint64_t at[] = {1, 2, 3};
    const unsigned none[] = {0, 0, 0};
    look_at(at, none, sizeof at / sizeof *at);
    LC_STORE(s.flight.header->takes, LC_TAKES_KEEPER);
    CHECK(lc_courier_is_owed(&courier));
    LC_STORE(slot->state, LC_SLOT_FREE);
}

TEST(a_pipe_in_the_bells_place_is_no_bell)
{
    char link_target[sizeof bell + 4];
    begin(nothing);
    const uint64_t before = started();
    snprintf(link_target, sizeof link_target, "%s.to", bell);
    CHECK(mkfifo(link_target, 0600) == 0 && symlink(link_target, bell) == 0);
    ask_at(SECOND);
    CHECK(atomic_load(&courier.outcome) == ELOOP && started() == before);
    unlink(link_target);
}

static void put(uint64_t number, uint64_t bytes)
{
    LC_STORE(s.flight.keeper->text_bytes, bytes);
    LC_RELEASE(s.flight.keeper->text_number, number);
}

TEST(any_length_and_number_is_survived)
{
    const uint64_t lengths[] = {
        0, 1, LC_CONSOLE_PIECE, LC_KEEPER_TEXT_BYTES, LC_KEEPER_TEXT_BYTES + 1u, UINT64_MAX};
    begin(nothing);
    LC_STORE(s.flight.keeper->taken[0], 1);
    struct stat facts;
    const int kept = dup(STDERR_FILENO), null = open("/dev/null", O_WRONLY);
    CHECK(dup2(null, STDERR_FILENO) >= 0 && fstat(STDERR_FILENO, &facts) == 0);
    lc_console_allow(&courier.console, facts.st_dev, facts.st_ino);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        const uint64_t written = LC_LOAD(s.flight.header->text_written);
        memset(s.flight.keeper->text, i % 2 ? 0x80 : '\n', LC_KEEPER_TEXT_BYTES);
        put(written + 2u, lengths[i]);
        CHECK(!lc_courier_look(&courier, SECOND) && LC_LOAD(s.flight.header->text_written) == written);
        put(written, lengths[i]);
        CHECK(!lc_courier_look(&courier, SECOND));
        put(written + 1u, lengths[i]);
        CHECK(lc_courier_look(&courier, SECOND) && LC_LOAD(s.flight.header->text_written) == written + 1u);
    }
    dup2(kept, STDERR_FILENO);
    close(kept);
    close(null);
    lc_console_allow(&courier.console, 0, 0);
}

/* Its thread waits by the machine's clock. */
static void begin_with_thread(void)
{
    begin(nothing);
    let_clock_run();
}

static void stop_it(void)
{
    do {
        lc_courier_ask_to_stop(&courier);
        CHECK(lc_life_stops_by(&courier.life, LC_NO_DEADLINE));
    } while (!lc_life_is(&courier.life, LC_LIFE_OVER));
}

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__) /* which need addresses themselves */
/* Before any that makes a thread: glibc keeps stacks. */
TEST(where_no_thread_can_be_made_nobody_waits_for_one)
{
    struct rlimit before;
    begin_with_thread();
    CHECK(getrlimit(RLIMIT_AS, &before) == 0);
    const struct rlimit none = {1, before.rlim_max};
    CHECK(setrlimit(RLIMIT_AS, &none) == 0);
    const lc_courier_wish asked = lc_courier_ask(&courier);
    CHECK(setrlimit(RLIMIT_AS, &before) == 0 && lc_courier_wait(&courier, &asked, LC_NO_DEADLINE) == EAGAIN);
    CHECK(!lc_courier_see_off(&courier, &asked, LC_NO_DEADLINE));
}
#endif

TEST(its_thread_does_what_was_asked)
{
    begin_with_thread();
    const int ear = make_bell();
    for (unsigned i = 0; i < 20; i++) {
        const lc_courier_wish asked = lc_courier_ask(&courier);
        CHECK(lc_courier_wait(&courier, &asked, LC_NO_DEADLINE) == 0);
        if (i % 2) {
            stop_it();
        }
    }
    char bytes[64];
    CHECK(read(ear, bytes, sizeof bytes) >= 20);
    close(ear);
}

static atomic_bool rings_on;

static void *ring_on(void *page)
{
    while (atomic_load(&rings_on)) {
        lc_bell_ring_shared(&((lc_keeper *)page)->bell);
    }
    return NULL;
}

TEST(a_page_that_rings_on_does_not_keep_it_busy)
{
    pthread_t ringer;
    begin_with_thread();
    const int ear = make_bell();
    atomic_store(&rings_on, true);
    CHECK(pthread_create(&ringer, NULL, ring_on, s.flight.keeper) == 0);
    const lc_courier_wish asked = lc_courier_ask(&courier);
    CHECK(lc_courier_wait(&courier, &asked, LC_NO_DEADLINE) == 0);
    CHECK(!lc_courier_see_off(&courier, &asked, lc_now_ns() + 10000000u));
    LC_STORE(s.flight.keeper->closed, 1);
    LC_STORE(s.flight.keeper->text_number, LC_LOAD(s.flight.header->text_written));
    CHECK(lc_courier_see_off(&courier, &asked, LC_NO_DEADLINE));
    LC_STORE(s.flight.keeper->closed, 0);
    atomic_store(&rings_on, false);
    pthread_join(ringer, NULL);
    stop_it();
    close(ear);
}

#if !defined(__SANITIZE_THREAD__) /* which allows no thread after a fork beside threads */
TEST(a_forked_child_has_no_courier)
{
    begin_with_thread();
    (void)lc_courier_ask(&courier);
    const pid_t child = fork();
    if (child == 0) {
        atomic_store(&courier.life, LC_LIFE_OVER); /* as module/agent.c has it */
        lc_courier_open(&courier, &s.flight);
        const lc_courier_wish asked = lc_courier_ask(&courier);
        const int outcome = lc_courier_wait(&courier, &asked, LC_NO_DEADLINE);
        stop_it();
        _exit(outcome == EINPROGRESS ? 0 : 1);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    stop_it();
}
#endif

int main(void)
{
    snprintf(bell, sizeof bell, "/tmp/loopcanary-courier-%d.bell", getpid());
    snprintf(mark, sizeof mark, "/tmp/loopcanary-courier-%d.mark", getpid());
    stage_open(&s);
    run_tests();
    stage_close(&s);
    free(atomic_load(&courier.words));
    unlink(bell);
    unlink(mark);
    return 0;
}
