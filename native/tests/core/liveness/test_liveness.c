/* Progress of loops, and what a service manager is told: pure stories, and one that is sent. */
#include "core/watchdog/watch_state.h"

#include <signal.h>
#include <sys/wait.h>

#include "tests/core/lane/still_stage.h"

#define S UINT64_C(1000000000)

static const lc_progress_facts IN_TURN = {.generation = 1, .turn = 7};

TEST(a_turn_is_held_for_as_long_as_it_was_looked_at)
{
    lc_progress p = {0};
    CHECK(lc_progress_note(&p, &IN_TURN, 100 * S) == 0);
    CHECK(lc_progress_note(&p, &IN_TURN, 101 * S) == S);
    CHECK(lc_progress_note(&p, &IN_TURN, 102 * S) == 2 * S);
    CHECK(lc_progress_note(&p, &(lc_progress_facts){.generation = 1, .turn = 8}, 103 * S) == 0);
    CHECK(lc_progress_note(&p, &(lc_progress_facts){.generation = 1, .turn = 9}, 104 * S) == 0);
    CHECK(lc_progress_note(&p, &(lc_progress_facts){.generation = 2, .turn = 9}, 105 * S) == 0);
}

TEST(a_process_that_was_stopped_for_an_hour_has_not_hung_for_it)
{
    lc_progress p = {0};
    lc_progress_note(&p, &IN_TURN, 100 * S);
    CHECK(lc_progress_note(&p, &IN_TURN, 3700 * S) == LC_PROGRESS_STEP_NS);
}

TEST(grants_of_one_turn_add_up)
{
    lc_progress p = {0};
    lc_progress_facts facts = {.generation = 1, .turn = 7, .grant_epoch = 3, .grant_ns = 5 * S};
    for (uint64_t i = 0; i < 5; i++) {
        CHECK(lc_progress_note(&p, &facts, (100 + i) * S) == 0);
    }
    facts.grant_ns = 0; /* the callback is over, the turn is not */
    CHECK(lc_progress_note(&p, &facts, 106 * S) == S);
    facts.grant_epoch = 5;
    facts.grant_ns = 2 * S;
    CHECK(lc_progress_note(&p, &facts, 107 * S) == 0);
    CHECK(lc_progress_note(&p, &facts, 109 * S) == 2 * S);
}

TEST(a_manager_is_fed_at_each_interval)
{
    lc_feed f;
    lc_feed_open(&f, "/run/notify", 15 * S);
    CHECK(lc_feed_due(&f, 100 * S, 0) == LC_FEED_ALIVE);
    lc_feed_said(&f, LC_FEED_ALIVE, 100 * S, true);
    CHECK(lc_feed_due(&f, 115 * S - 1, 0) == LC_FEED_NOTHING && lc_feed_next_ns(&f) == 115 * S);
    CHECK(lc_feed_due(&f, 115 * S, 15 * S) == LC_FEED_ALIVE); /* a legal turn */
    lc_feed_said(&f, LC_FEED_ALIVE, 115 * S, false);
    CHECK(lc_feed_next_ns(&f) < 119 * S); /* the socket was full: soon again */
}

TEST(a_loop_that_hangs_starves_the_manager_until_it_moves_on)
{
    lc_feed f;
    lc_feed_open(&f, "@notify", 15 * S);
    lc_feed_said(&f, LC_FEED_ALIVE, 100 * S, true);
    CHECK(lc_feed_due(&f, 105 * S, 15 * S + 1) == LC_FEED_STUCK);
    lc_feed_said(&f, LC_FEED_STUCK, 105 * S, true);
    CHECK(lc_feed_due(&f, 1000 * S, 900 * S) == LC_FEED_NOTHING && lc_feed_next_ns(&f) == UINT64_MAX);
    CHECK(lc_feed_due(&f, 1001 * S, 0) == LC_FEED_RECOVERED);
    lc_feed_said(&f, LC_FEED_RECOVERED, 1001 * S, true);
    CHECK(lc_feed_due(&f, 1016 * S, 0) == LC_FEED_ALIVE);
}

TEST(no_manager_or_one_that_cannot_be_reached_is_not_fed)
{
    const char *const sockets[] = {NULL, "", "/", "vsock:2:1234", "relative"};
    char longest[200];
    lc_feed f;
    for (unsigned i = 0; i < sizeof sockets / sizeof *sockets; i++) {
        lc_feed_open(&f, sockets[i], S);
        CHECK(lc_feed_due(&f, 100 * S, 0) == LC_FEED_NOTHING && lc_feed_next_ns(&f) == UINT64_MAX);
    }
    memset(longest, '/', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    lc_feed_open(&f, longest, S);
    CHECK(lc_feed_due(&f, 100 * S, 0) == LC_FEED_NOTHING);
    lc_feed_open(&f, "/nowhere/notify", S);
    CHECK(!lc_feed_send(&f, "WATCHDOG=1", 10));
}

static stage s;
static char name[64];
static int manager;

static bool was_told(const char *text)
{
    char got[1024] = "";
    return recv(manager, got, sizeof got - 1, MSG_DONTWAIT) > 0 && strcmp(got, text) == 0;
}

TEST(the_loop_and_its_callback_are_named)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int length = snprintf(name, sizeof name, "@loopcanary-test-%d", getpid());
    stage_open_still(&s);
    memcpy(s.lane->thread_name, "Main\nThread", sizeof "Main\nThread");
    memcpy(s.lane->loop_kind, "asyncio", sizeof "asyncio");
    memcpy(address.sun_path + 1, name + 1, (size_t)length - 1);
    manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    CHECK(bind(manager, (struct sockaddr *)&address,
               (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)length)) == 0);
    lc_feed_open(&s.watchdog.feed, name, 3 * S);
    const uint64_t now = lc_now_ns();
    CHECK(lc_liveness_look(&s.watchdog, now) == now + 3 * S && was_told("WATCHDOG=1"));
    lc_turn_begin(stage_context(&s), s.lane);
    lc_callback_begin(s.lane, 7, 0);
    age_callback(&s, 2 * THRESHOLD_MS);
    look(&s);
    for (uint64_t i = 1; i <= 5; i++) {
        lc_liveness_look(&s.watchdog, now + i * S);
    }
    CHECK(was_told("WATCHDOG=1")); /* at 3 s it has lasted for 2 */
    CHECK(
        was_told("STATUS=loopcanary: Main?Thread (asyncio) has not waited for events for 4.0 s, in handler"));
    CHECK(lc_liveness_look(&s.watchdog, now + 60 * S) == now + 60 * S + LC_PROGRESS_LOOK_NS &&
          !was_told("WATCHDOG=1"));
    lc_callback_end(stage_context(&s), s.lane);
    lc_turn_end(stage_context(&s), s.lane);
    lc_liveness_look(&s.watchdog, now + 61 * S);
    CHECK(was_told("WATCHDOG=1\nSTATUS=loopcanary: every loop makes progress again"));
    s.watchdog.feed.interval_ns = 0;
}

TEST(a_turn_that_is_too_long_ends_the_process)
{
    const uint64_t now = lc_now_ns();
    s.watchdog.settings.exit_hung_ns = 3 * S;
    CHECK(lc_liveness_look(&s.watchdog, now) == LC_NO_DEADLINE);
    lc_turn_begin(stage_context(&s), s.lane);
    for (uint64_t i = 1; i <= 3; i++) {
        CHECK(lc_liveness_look(&s.watchdog, now + i * S) == now + i * S + LC_PROGRESS_LOOK_NS);
    }
    const pid_t child = fork();
    if (child == 0) {
        lc_liveness_look(&s.watchdog, now + 5 * S);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    lc_turn_end(stage_context(&s), s.lane);
    stage_close(&s);
}

int main(void) { return run_tests(); }
