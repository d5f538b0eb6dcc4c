/* Who has sent a signal, and what its handler waits for. */
#include "core/signals/kill_signals.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "core/signals/disposition.h"
#include "core/watchdog/watch_state.h"
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

TEST(a_sender_that_has_ended_is_told_by_its_name)
{
    siginfo_t ended;
    open_with_handler();
    const pid_t sender = fork();
    if (sender == 0) {
        prctl(PR_SET_NAME, "sen\nder", 0, 0, 0);
        kill(getppid(), SIGTERM);
        _exit(0);
    }
    /* the signal may end it; then it has no memory any more */
    while (waitid(P_PID, (id_t)sender, &ended, WEXITED | WNOWAIT) != 0) {
    }
    CHECK(LC_LOAD(signals()->named) == 0);
    lc_kill_signals_look(&s.watchdog);
    CHECK(strcmp(signals()->kept[0].command, "sen der") == 0 && LC_LOAD(signals()->named) == 1);
    CHECK(waitpid(sender, NULL, 0) == sender);
    close_all();
}

TEST(the_latest_are_kept)
{
    open_with_handler();
    for (uint64_t i = 0; i < LC_SIGNALS_KEPT + 1; i++) {
        raise(SIGTERM);
    }
    CHECK(LC_LOAD(signals()->seen) == LC_SIGNALS_KEPT + 1 && calls == (int)LC_SIGNALS_KEPT + 1);
    CHECK(LC_LOAD(signals()->kept[0].sequence) == LC_SIGNALS_KEPT + 1 &&
          LC_LOAD(signals()->kept[1].sequence) == 2);
    close_all();
}

static uint32_t rung; /* before there was anything to look at */

static void *look_once_asked(void *unused)
{
    (void)unused;
    while (atomic_load(&s.watchdog.bell) == rung) {
        usleep(100);
    }
    lc_kill_signals_look(&s.watchdog);
    return NULL;
}

/* A thread that looks once, as soon as a handler has rung. */
static pthread_t start_watchdog(void)
{
    pthread_t watchdog;
    rung = atomic_load(&s.watchdog.bell);
    CHECK(pthread_create(&watchdog, NULL, look_once_asked, NULL) == 0);
    return watchdog;
}

TEST(in_a_stall_all_threads_are_read_before_it_goes_on)
{
    open_with_handler();
    stall();
    CHECK(LC_LOAD(slot(&s, 0)->state) == LC_SLOT_STALL && LC_LOAD(slot(&s, 0)->thread_count) == 0);
    const pthread_t watchdog = start_watchdog();
    const uint64_t before = lc_now_ns();
    raise(SIGTERM);
    const bool is_read = LC_LOAD(slot(&s, 0)->thread_count) > 0;
    /* a crowded machine may not give that thread a core in time */
    CHECK(calls == 1 && (is_read || lc_now_ns() - before >= s.watchdog.settings.signal_patience_ns));
    CHECK(pthread_join(watchdog, NULL) == 0);
    const uint64_t threads = LC_LOAD(slot(&s, 0)->thread_count);
    CHECK(threads > 0);
    for (uint64_t i = 0; i < threads; i++) {
        slot(&s, 0)->threads[i].at_ns = lc_now_ns() + 500000000u; /* however late this one is run */
    }
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
    volatile char *forbidden = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const struct sigaction wanted = {.sa_handler = comes_back, .sa_flags = SA_NODEFER};
    struct sigaction before;
    calls = 0;
    stage_open(&s);
    CHECK(sigaction(SIGSEGV, &wanted, &before) == 0);
    lc_kill_signals_begin(&s.watchdog, LC_SIGNAL_BIT(SIGSEGV), NULL);
    atomic_store(&s.watchdog.life, LC_LIFE_RUNS);
    LC_STORE(s.lane->tid, (uint64_t)syscall(SYS_gettid));
    LC_STORE(s.lane->threshold, UINT64_MAX / 4u); /* no wait for a core makes it a stall */
    LC_STORE(s.lane->sample_delay, UINT64_MAX / 4u);
    lc_turn_begin(stage_context(&s), s.lane);
    lc_callback_begin(s.lane, 7, 0);
    look(&s); /* there is nothing to see yet */
    CHECK(slot(&s, 0) == NULL);
    const pthread_t watchdog = start_watchdog();
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

/* On this thread, of an engine that has seen none before; the watchdog looks once. */
static void fault_once(volatile char *forbidden)
{
    CHECK(lc_kill_signals_end());
    lc_kill_signals_begin(&s.watchdog, LC_SIGNAL_BIT(SIGSEGV), NULL);
    LC_STORE(signals()->seen, 0);
    const pthread_t watchdog = start_watchdog();
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
    CHECK(LC_LOAD(taken->begin_ns) == LC_LOAD(signals()->kept[0].at_ns) &&
          LC_LOAD(signals()->kept[0].stack) == 0);
    CHECK(LC_LOAD(taken->sample_count) == 1 && LC_LOAD(taken->thread_count) > 0);
    const uint64_t serial = LC_LOAD(taken->serial);
    look(&s);
    CHECK(LC_LOAD(taken->state) == LC_SLOT_STALL); /* the process may be dying */
    fault_once(forbidden);
    CHECK(LC_LOAD(taken->state) == LC_SLOT_STALL && LC_LOAD(taken->serial) > serial && slot(&s, 1) == NULL);
    lc_turn_begin(stage_context(&s), s.lane);
    fault_once(forbidden);
    CHECK(LC_LOAD(taken->state) == LC_SLOT_STALL && LC_LOAD(taken->kind) == LC_ENDED_TURN &&
          slot(&s, 1) == NULL);
    lc_turn_end(stage_context(&s), s.lane);
    close_all();
    CHECK(sigaction(SIGSEGV, &before, NULL) == 0);
}

static uint64_t own_cpu_ns(void)
{
    struct timespec used;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

TEST(a_fault_whose_handler_has_mended_one_is_not_waited_for)
{
    volatile char *forbidden = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const struct sigaction wanted = {.sa_handler = comes_back, .sa_flags = SA_NODEFER};
    struct sigaction before;
    stage_open(&s);
    CHECK(sigaction(SIGSEGV, &wanted, &before) == 0);
    atomic_store(&s.watchdog.life, LC_LIFE_RUNS);
    LC_STORE(s.lane->tid, (uint64_t)syscall(SYS_gettid));
    fault_once(forbidden);
    calls = 0;
    const uint64_t begin = own_cpu_ns();      /* a fault is waited for awake */
    for (volatile int i = 0; i < 1000; i++) { /* nobody looks */
        if (sigsetjmp(back, 1) == 0) {
            *forbidden = 1;
        }
    }
    CHECK(calls == 1000 && LC_LOAD(signals()->seen) == 1 &&
          own_cpu_ns() - begin < s.watchdog.settings.fault_patience_ns / 2);
    if (sigsetjmp(back, 1) == 0) {
        raise(SIGSEGV); /* sent, and no fault */
    }
    CHECK(LC_LOAD(signals()->seen) == 2);
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
    CHECK(LC_LOAD(left.seen) == 1 && LC_LOAD(left.kept[0].stack) == LC_STACK_OVER &&
          LC_LOAD(left.kept[0].ends) == 1);
}

static void mends_one_and_dies_of_the_next(volatile char *forbidden)
{
    const struct sigaction wanted = {.sa_handler = comes_back, .sa_flags = SA_NODEFER};
    stage_open(&s);
    CHECK(sigaction(SIGSEGV, &wanted, NULL) == 0);
    lc_kill_signals_begin(&s.watchdog, LC_SIGNAL_BIT(SIGSEGV), NULL);
    for (volatile int i = 0; i < 2; i++) {
        if (sigsetjmp(back, 1) == 0) {
            *forbidden = 1;
        }
    }
    const struct sigaction plain = {.sa_handler = SIG_DFL};
    CHECK(lc_disposition_change(SIGSEGV, &plain, NULL) == 0);
    *forbidden = 1;
}

#if !defined(__SANITIZE_THREAD__) /* whose handlers are called in its own */
static volatile char *wall;

/* As a crash reporter that reads what others change. */
static void faults_itself(int number)
{
    const struct sigaction plain = {.sa_handler = SIG_DFL};
    CHECK(lc_disposition_change(number, &plain, NULL) == 0);
    wall[1] = 1;
}

static void dies_in_its_reporter(void)
{
    static char room[64 * 1024];
    const stack_t apart = {.ss_sp = room, .ss_size = sizeof room};
    const struct sigaction wanted = {.sa_handler = faults_itself, .sa_flags = SA_NODEFER | SA_ONSTACK};
    stage_open(&s);
    CHECK(sigaltstack(&apart, NULL) == 0 && sigaction(SIGSEGV, &wanted, NULL) == 0);
    lc_kill_signals_begin(&s.watchdog, LC_SIGNAL_BIT(SIGSEGV), NULL);
    wall[0] = 1;
}

TEST(a_fault_in_a_handler_of_faults_is_told_from_the_one_that_it_handles)
{
    lc_signals left;
    int status;
    wall = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const pid_t child = fork();
    if (child == 0) {
        dies_in_its_reporter();
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    read_signals(child, &left);
    CHECK(LC_LOAD(left.seen) == 2 && LC_LOAD(left.kept[0].stack) == 0 &&
          LC_LOAD(left.kept[1].stack) == LC_STACK_ALTERNATE);
}

static void faults(int number) { wall[number] = 1; }

TEST(a_fault_in_a_handler_of_another_signal_began_with_itself)
{
    static char room[64 * 1024];
    const stack_t apart = {.ss_sp = room, .ss_size = sizeof room}, none = {.ss_flags = SS_DISABLE};
    const struct sigaction mends = {.sa_handler = comes_back, .sa_flags = SA_NODEFER},
                           errs = {.sa_handler = faults, .sa_flags = SA_ONSTACK};
    struct sigaction before;
    wall = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    open_with_handler();
    raise(SIGTERM);
    raise(SIGTERM); /* this thread's, too */
    LC_STORE(signals()->seen, 0);
    CHECK(lc_kill_signals_end() && sigaction(SIGSEGV, &mends, &before) == 0);
    CHECK(sigaltstack(&apart, NULL) == 0 && sigaction(SIGUSR1, &errs, NULL) == 0);
    lc_kill_signals_begin(&s.watchdog, LC_SIGNAL_BIT(SIGSEGV), NULL);
    atomic_store(&s.watchdog.life, LC_LIFE_RUNS);
    const pthread_t watchdog = start_watchdog();
    if (sigsetjmp(back, 1) == 0) {
        raise(SIGUSR1);
    }
    CHECK(pthread_join(watchdog, NULL) == 0);
    CHECK(LC_LOAD(signals()->kept[0].stack) == LC_STACK_ALTERNATE &&
          LC_LOAD(signals()->kept[1].number) == SIGTERM);
    CHECK(LC_LOAD(slot(&s, 0)->begin_ns) == LC_LOAD(signals()->kept[0].at_ns));
    close_all();
    CHECK(sigaltstack(&none, NULL) == 0 && sigaction(SIGSEGV, &before, NULL) == 0);
    signal(SIGUSR1, SIG_DFL);
}
#endif

TEST(a_fault_that_ends_the_process_is_noted_after_mended_ones)
{
    volatile char *forbidden = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    lc_signals left;
    int status;
    const pid_t child = fork();
    if (child == 0) {
        mends_one_and_dies_of_the_next(forbidden);
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    read_signals(child, &left);
    CHECK(LC_LOAD(left.seen) == 2 && LC_LOAD(left.kept[0].ends) == 0 && LC_LOAD(left.kept[1].ends) == 1);
}

TEST(a_watchdog_that_does_not_answer_holds_no_signal_back_for_long)
{
    open_with_handler();
    stall();
    const uint64_t before = lc_now_ns();
    raise(SIGTERM);
    CHECK(calls == 1 && lc_now_ns() - before >= s.watchdog.settings.signal_patience_ns);
    const uint64_t after = lc_now_ns();
    for (int i = 0; i < 1000; i++) {
        raise(SIGTERM); /* none of these waits: else these would take 50 s */
    }
    CHECK(calls == 1001 && lc_now_ns() - after < 500 * s.watchdog.settings.signal_patience_ns);
    lc_callback_end(stage_context(&s), s.lane);
    lc_turn_end(stage_context(&s), s.lane);
    close_all();
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* whose frames are others */
/* How many bytes of an alternate stack a SIGTERM takes. */
static size_t taken_by_signal(void)
{
    static unsigned char room[256 * 1024];
    const stack_t alternate = {.ss_sp = room, .ss_size = sizeof room}, none = {.ss_flags = SS_DISABLE};
    size_t untouched = 0;
    memset(room, 0xA5, sizeof room);
    CHECK(sigaltstack(&alternate, NULL) == 0 && raise(SIGTERM) == 0 && sigaltstack(&none, NULL) == 0);
    while (room[untouched] == 0xA5) {
        untouched++;
    }
    return sizeof room - untouched;
}

TEST(a_handler_on_a_small_alternate_stack_keeps_its_room)
{
    const struct sigaction wanted = {.sa_handler = called, .sa_flags = SA_ONSTACK};
    open_with_handler();
    CHECK(lc_kill_signals_end() && sigaction(SIGTERM, &wanted, NULL) == 0);
    const size_t alone = taken_by_signal();
    lc_kill_signals_begin(&s.watchdog, LC_SIGNAL_BIT(SIGTERM), NULL);
    stall(); /* it waits, too */
    const size_t with_ours = taken_by_signal();
    CHECK(calls == 2 && LC_LOAD(signals()->seen) == 1 && with_ours > alone && with_ours - alone < 2048);
    lc_callback_end(stage_context(&s), s.lane);
    lc_turn_end(stage_context(&s), s.lane);
    close_all();
}
#endif

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
