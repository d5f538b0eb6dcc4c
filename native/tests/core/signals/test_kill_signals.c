/* Who has sent a signal, and what its handler waits for. */
#include "core/signals/kill_signals.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
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

static sigjmp_buf back;

static void comes_back(int number)
{
    calls += number == SIGSEGV;
    siglongjmp(back, 1);
}

TEST(a_fault_makes_a_stall_of_the_turn_that_it_comes_in)
{
    pthread_t watchdog;
    volatile char *forbidden = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const struct sigaction wanted = {.sa_handler = comes_back, .sa_flags = SA_NODEFER};
    struct sigaction before;
    calls = 0;
    stage_open(&s);
    CHECK(sigaction(SIGSEGV, &wanted, &before) == 0);
    lc_kill_signals_begin(&s.watchdog, LC_SIGNAL_BIT(SIGSEGV), NULL);
    atomic_store(&s.watchdog.life, LC_LIFE_RUNS);
    LC_STORE(s.lane->tid, (uint64_t)syscall(SYS_gettid));
    lc_turn_begin(stage_context(&s), s.lane);
    lc_callback_begin(s.lane, 7, 0);
    look(&s); /* which has just begun: there is nothing to see yet */
    CHECK(slot(&s, 0) == NULL);
    CHECK(pthread_create(&watchdog, NULL, look_once_asked, NULL) == 0);
    if (sigsetjmp(back, 1) == 0) {
        *forbidden = 1;
    }
    CHECK(pthread_join(watchdog, NULL) == 0);
    const lc_signal_entry *entry = &signals()->kept[0];
    CHECK(calls == 1 && LC_LOAD(entry->number) == SIGSEGV && LC_LOAD(entry->pid) == 0);
    CHECK(LC_LOAD(entry->tid) == (uint64_t)syscall(SYS_gettid));
    CHECK(LC_LOAD(slot(&s, 0)->state) == LC_SLOT_STALL && LC_LOAD(slot(&s, 0)->thread_count) > 0);
    CHECK(LC_LOAD(slot(&s, 0)->kind) == LC_ENDED_CALLBACK);
    lc_callback_end(stage_context(&s), s.lane);
    lc_turn_end(stage_context(&s), s.lane);
    look(&s); /* the program goes on, and was not over its threshold */
    CHECK(LC_LOAD(slot(&s, 0)->state) == LC_SLOT_FREE);
    atomic_store(&s.watchdog.life, LC_LIFE_OVER);
    CHECK(lc_kill_signals_end());
    CHECK(sigaction(SIGSEGV, &before, NULL) == 0);
    stage_close(&s);
}

/* On this thread; the watchdog looks once. */
static void fault_once(volatile char *forbidden)
{
    pthread_t watchdog;
    LC_STORE(signals()->seen, 0);
    CHECK(pthread_create(&watchdog, NULL, look_once_asked, NULL) == 0);
    if (sigsetjmp(back, 1) == 0) {
        *forbidden = 1;
    }
    CHECK(pthread_join(watchdog, NULL) == 0);
}

TEST(a_fault_in_no_turn_has_a_slot_of_its_own)
{
    volatile char *forbidden = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const struct sigaction wanted = {.sa_handler = comes_back, .sa_flags = SA_NODEFER};
    const uint64_t own = (uint64_t)syscall(SYS_gettid);
    struct sigaction before;
    stage_open(&s);
    CHECK(sigaction(SIGSEGV, &wanted, &before) == 0);
    lc_kill_signals_begin(&s.watchdog, LC_SIGNAL_BIT(SIGSEGV), NULL);
    atomic_store(&s.watchdog.life, LC_LIFE_RUNS);
    LC_STORE(s.lane->tid, own);
    fault_once(forbidden);
    const lc_slot *taken = slot(&s, 0);
    CHECK(LC_LOAD(taken->state) == LC_SLOT_STALL && LC_LOAD(taken->kind) == LC_ENDED_FAULT);
    CHECK(taken->lane == LC_LANE_COUNT && taken->tid == own && strcmp(taken->loop_kind, "thread") == 0);
    CHECK(LC_LOAD(taken->begin_ns) == LC_LOAD(signals()->kept[0].at_ns) && LC_LOAD(signals()->kept[0].stack_over) == 0);
    CHECK(LC_LOAD(taken->sample_count) == 1 && LC_LOAD(taken->thread_count) > 0);
    const uint64_t serial = LC_LOAD(taken->serial);
    look(&s);
    CHECK(LC_LOAD(taken->state) == LC_SLOT_STALL); /* the process may be dying */
    fault_once(forbidden);
    CHECK(LC_LOAD(taken->state) == LC_SLOT_STALL && LC_LOAD(taken->serial) > serial && slot(&s, 1) == NULL);
    lc_turn_begin(stage_context(&s), s.lane);
    fault_once(forbidden);
    CHECK(LC_LOAD(taken->state) == LC_SLOT_STALL && LC_LOAD(taken->kind) == LC_ENDED_TURN && slot(&s, 1) == NULL);
    lc_turn_end(stage_context(&s), s.lane);
    close_all();
    CHECK(sigaction(SIGSEGV, &before, NULL) == 0);
}

static __attribute__((noinline)) int run_over(int depth)
{
    volatile char room[1024];
    room[0] = (char)depth;
    return depth < 0 ? 0 : run_over(depth + 1) + room[0];
}

/* The file of the child, which has died. */
static void read_signals(pid_t child, lc_signals *out)
{
    char path[64];
    snprintf(path, sizeof path, "/tmp/loopcanary-test-%d.flight", child);
    const int file = open(path, O_RDONLY);
    CHECK(file >= 0 && pread(file, out, sizeof *out, LC_SIGNALS_OFFSET) == (ssize_t)sizeof *out);
    close(file);
    unlink(path);
}

TEST(a_stack_that_has_run_over_is_told_from_other_faults)
{
    lc_signals left;
    int status;
    const pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        stage_open(&s);
        lc_kill_signals_begin(&s.watchdog, LC_SIGNAL_BIT(SIGSEGV), NULL);
        _exit(run_over(0));
    }
    CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    read_signals(child, &left);
    CHECK(LC_LOAD(left.seen) == 1 && LC_LOAD(left.kept[0].stack_over) == 1 && LC_LOAD(left.kept[0].ends) == 1);
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
