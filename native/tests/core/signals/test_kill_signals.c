/* Who has sent a signal, and what its handler waits for. */
#include "core/signals/kill_signals.h"

#include <signal.h>
#include <sys/wait.h>

#include "core/signals/disposition.h"
#include "core/watchdog/stall_watch.h"
#include "tests/core/lane/bench_lane.h"

static stage s;
static _Atomic int calls;

static void called(int number) { calls += number == SIGTERM; }

static lc_signals *signals(void) { return (lc_signals *)((char *)s.flight.header + LC_SIGNALS_OFFSET); }

static void open_with_handler(void)
{
    calls = 0;
    stage_open(&s);
    signal(SIGTERM, called);
    lc_kill_signals_begin(&s.watchdog, LC_SIGNAL_BIT(SIGTERM), NULL);
}

static void close_all(void)
{
    atomic_store(&s.watchdog.life, LC_LIFE_OVER);
    CHECK(lc_kill_signals_end());
    stage_close(&s);
    signal(SIGTERM, SIG_DFL);
}

static void stall(void)
{
    atomic_store(&s.watchdog.life, LC_LIFE_RUNS);
    lc_turn_begin(stage_context(&s), s.lane);
    lc_callback_begin(s.lane, 7, 0);
    age_callback(&s, 2 * THRESHOLD_MS);
    look(&s);
}

TEST(a_sender_is_noted_and_named)
{
    open_with_handler();
    const uint64_t before = lc_now_ns();
    kill(getpid(), SIGTERM);
    CHECK(calls == 1 && LC_LOAD(signals()->seen) == 1);
    const lc_signal_entry *entry = &signals()->kept[0];
    CHECK(LC_LOAD(entry->sequence) == 1 && LC_LOAD(entry->number) == SIGTERM && LC_LOAD(entry->ends) == 0);
    CHECK(LC_LOAD(entry->pid) == (uint64_t)getpid() && LC_LOAD(entry->uid) == getuid());
    CHECK(LC_LOAD(entry->at_ns) >= before && LC_LOAD(entry->at_ns) <= lc_now_ns());
    CHECK(entry->command[0] == '\0');
    lc_kill_signals_look(&s.watchdog);
    CHECK(strstr(entry->command, "test_kill_signals") != NULL);
    close_all();
}

TEST(a_sender_is_looked_for_once)
{
    open_with_handler();
    raise(SIGTERM);
    LC_STORE(signals()->kept[0].pid, (uint64_t)1 << 31); /* there is none */
    lc_kill_signals_look(&s.watchdog);
    LC_STORE(signals()->kept[0].pid, (uint64_t)getpid());
    raise(SIGTERM);
    lc_kill_signals_look(&s.watchdog);
    CHECK(signals()->kept[0].command[0] == '\0' && signals()->kept[1].command[0] != '\0');
    close_all();
}

TEST(the_latest_are_kept)
{
    open_with_handler();
    for (uint64_t i = 0; i < LC_SIGNALS_KEPT + 1; i++) {
        raise(SIGTERM);
    }
    CHECK(LC_LOAD(signals()->seen) == LC_SIGNALS_KEPT + 1 && calls == (int)LC_SIGNALS_KEPT + 1);
    CHECK(LC_LOAD(signals()->kept[0].sequence) == LC_SIGNALS_KEPT + 1 && LC_LOAD(signals()->kept[1].sequence) == 2);
    close_all();
}

static void *look_once_asked(void *unused)
{
    (void)unused;
    while (LC_LOAD(signals()->seen) == 0) {
        usleep(100);
    }
    lc_kill_signals_look(&s.watchdog);
    return NULL;
}

TEST(in_a_stall_all_threads_are_read_before_it_goes_on)
{
    pthread_t watchdog;
    open_with_handler();
    stall();
    CHECK(LC_LOAD(slot(&s, 0)->state) == LC_SLOT_STALL && LC_LOAD(slot(&s, 0)->thread_count) == 0);
    CHECK(pthread_create(&watchdog, NULL, look_once_asked, NULL) == 0);
    raise(SIGTERM);
    const uint64_t threads = LC_LOAD(slot(&s, 0)->thread_count);
    CHECK(pthread_join(watchdog, NULL) == 0);
    CHECK(calls == 1 && threads > 0);
    lc_stall_watch_take_threads(&s.watchdog, 0);
    CHECK(LC_LOAD(slot(&s, 0)->thread_count) == threads); /* they have just been read */
    age_callback(&s, 1000);
    look(&s);
    CHECK(LC_LOAD(slot(&s, 0)->level) == LC_LEVEL_HANG && LC_LOAD(slot(&s, 0)->thread_count) == 2 * threads);
    for (uint64_t i = 0; i < 2 * threads; i++) {
        slot(&s, 0)->threads[i].at_ns -= 2u * 500000000u; /* a second later */
    }
    lc_stall_watch_take_threads(&s.watchdog, 0);
    CHECK(LC_LOAD(slot(&s, 0)->thread_count) == 3 * threads);
    lc_callback_end(stage_context(&s), s.lane);
    lc_turn_end(stage_context(&s), s.lane);
    close_all();
}

TEST(a_watchdog_that_does_not_answer_holds_no_signal_back_for_long)
{
    open_with_handler();
    stall();
    const uint64_t before = lc_now_ns();
    raise(SIGTERM);
    CHECK(calls == 1 && lc_now_ns() - before >= LC_SIGNAL_PATIENCE_NS);
    const uint64_t after = lc_now_ns();
    for (int i = 0; i < 1000; i++) {
        raise(SIGTERM); /* none of these waits: else these would take 50 s */
    }
    CHECK(calls == 1001 && lc_now_ns() - after < 100 * LC_SIGNAL_PATIENCE_NS);
    lc_callback_end(stage_context(&s), s.lane);
    lc_turn_end(stage_context(&s), s.lane);
    close_all();
}

TEST(a_child_and_an_engine_that_has_stopped_note_nothing)
{
    int status;
    open_with_handler();
    const pid_t child = fork();
    if (child == 0) {
        lc_kill_signals_leave();
        raise(SIGTERM);
        _exit(calls == 1 ? 0 : 1);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0 && LC_LOAD(signals()->seen) == 0);
    CHECK(lc_kill_signals_end() && lc_kill_signals_end());
    raise(SIGTERM);
    CHECK(calls == 1 && LC_LOAD(signals()->seen) == 0);
    close_all();
}

int main(void) { return run_tests(); }
