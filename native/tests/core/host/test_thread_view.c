/* What the kernel says of a thread that sleeps, runs, or can do neither: as /proc has it, read again or
 * not. */
#include "core/host/thread_view.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/check.h"
#include "core/flight/flight_format.h"
#include "core/clock/clock.h"

/* A thread does one thing after another, each until a byte comes. */
static int orders[2];
static _Atomic uint32_t tid;
static _Atomic bool spinning, has_child;

static char next_order(void)
{
    char order = 0;
    CHECK(read(orders[0], &order, 1) == 1);
    return order;
}

static void spin(void)
{
    struct pollfd come = {.fd = orders[0], .events = POLLIN};
    atomic_store(&spinning, true);
    while (poll(&come, 1, 0) == 0) {
    }
    atomic_store(&spinning, false);
}

/* Until the child ends, its parent is in uninterruptible sleep: vfork(2). */
static void sleep_like_a_disk(void)
{
    const pid_t child = vfork();
    if (child == 0) {
        char order;
        atomic_store(&has_child, true); /* in its parent's memory */
        _exit(read(orders[0], &order, 1) == 1 ? 0 : 1);
    }
    CHECK(child > 0 && waitpid(child, NULL, 0) == child);
}

static void *work(void *none)
{
    atomic_store(&tid, (uint32_t)syscall(SYS_gettid));
    for (char order = next_order(); order != 'e'; order = next_order()) {
        if (order == 's') {
            spin();
        } else if (order == 'd') {
            sleep_like_a_disk();
        }
    }
    return none;
}

static void give(char order) { CHECK(write(orders[1], &order, 1) == 1); }

static void wait_for_state(char letter)
{
    while (lc_thread_state_letter(atomic_load(&tid)) != letter) {
        usleep(1000);
    }
}

/* For its next order. The letter S alone may be of a shorter wait on the way. */
static void wait_until_asleep(void)
{
    lc_thread_view view;
    lc_thread_reading reading;
    lc_thread_view_open(&view, atomic_load(&tid));
    do {
        usleep(1000);
        lc_thread_view_read(&view, 0, true, &reading);
    } while (reading.syscall.number != SYS_read || reading.stat.state != 'S');
    lc_thread_view_close(&view);
}

/* As a sample does: the thread's clock first, as a walk that found it standing still. */
static lc_thread_reading view_now(lc_thread_view *view, bool whole)
{
    lc_thread_reading reading;
    uint64_t before = 0;
    uint64_t after = 0;
    CHECK(lc_thread_cpu_ns(atomic_load(&tid), &before) && lc_thread_cpu_ns(atomic_load(&tid), &after));
    lc_thread_view_read(view, before == after ? after : 0, whole, &reading);
    return reading;
}

static void check_asleep(const lc_thread_reading *reading)
{
    CHECK(reading->complete && reading->stat.state == 'S');
    CHECK(reading->syscall.number == SYS_read && reading->syscall.args[0] == (uint64_t)orders[0]);
    CHECK(reading->sched.on_cpu_ns != 0);
}

static void a_sleeper_is_the_same_each_time(lc_thread_view *view)
{
    wait_until_asleep();
    const lc_thread_reading first = view_now(view, true);
    check_asleep(&first);
    CHECK(first.switches.voluntary != 0);
    CHECK(view->last_cpu_ns == first.sched.on_cpu_ns);
    for (int again = 0; again < 3; again++) {
        const lc_thread_reading reading = view_now(view, again == 1);
        CHECK(memcmp(&reading, &first, sizeof first) == 0);
    }
}

static void a_runner_is_running_and_its_time_goes_on(lc_thread_view *view)
{
    const uint64_t before = view->last.sched.on_cpu_ns;
    give('s');
    while (!atomic_load(&spinning)) {
        usleep(1000);
    }
    lc_thread_reading reading = view_now(view, false);
    while (reading.sched.on_cpu_ns == before) { /* the kernel adds it up at its ticks */
        usleep(1000);
        reading = view_now(view, false);
    }
    CHECK(reading.complete && reading.stat.state == 'R');
#ifdef SYS_poll /* not on every architecture */
    const bool polls = reading.syscall.number == SYS_poll || reading.syscall.number == SYS_ppoll;
#else
    const bool polls = reading.syscall.number == SYS_ppoll;
#endif
    CHECK(reading.syscall.number == LC_SYSCALL_RUNNING || polls);
    give('.');
    wait_until_asleep();
}

static void its_priority_is_its_own(void)
{
    lc_host_entry entry = {.told = LC_HOST_SYSTEM};
    cpu_set_t one, before;
    const pid_t other = (pid_t)atomic_load(&tid);
    lc_thread_priority((uint64_t)other, &entry);
    CHECK(entry.told == (LC_HOST_SYSTEM | LC_HOST_PRIORITY) && entry.cores != 0);
    /* as inherited */
    CHECK(entry.nice == getpriority(PRIO_PROCESS, 0) && entry.policy == syscall(SYS_sched_getscheduler, 0));
    CHECK(sched_getaffinity(other, sizeof before, &before) == 0);
    CPU_ZERO(&one);
    for (int core = 0; core < CPU_SETSIZE && CPU_COUNT(&one) == 0; core++) {
        if (CPU_ISSET(core, &before)) {
            CPU_SET(core, &one);
        }
    }
    const struct sched_param none = {0};
    CHECK(sched_setaffinity(other, sizeof one, &one) == 0);
    CHECK(syscall(SYS_sched_setscheduler, other, SCHED_BATCH, &none) == 0);
    CHECK(setpriority(PRIO_PROCESS, (id_t)other, 19) == 0); /* always allowed */
    lc_thread_priority((uint64_t)other, &entry);
    CHECK(entry.nice == 19 && entry.policy == SCHED_BATCH && entry.cores == 1);
    lc_thread_priority(UINT32_MAX >> 1, &entry); /* there is no such thread */
    CHECK(entry.told == LC_HOST_SYSTEM && entry.cores == 0);
}

__attribute__((unused)) static void uninterruptible_sleep_is_told_apart_and_left_again(lc_thread_view *view)
{
    wait_until_asleep();
    lc_thread_reading reading = view_now(view, false);
    check_asleep(&reading);
    give('d');
    while (!atomic_load(&has_child)) { /* the letter D before that may be of a lock on the way */
        usleep(1000);
    }
    wait_for_state('D');
    for (int again = 0; again < 3; again++) {
        reading = view_now(view, false);
        CHECK(reading.complete && reading.stat.state == 'D' && reading.syscall.number != SYS_read);
    }
    give('.');
    wait_until_asleep();
    reading = view_now(view, false);
    check_asleep(&reading);
}

static void a_thread_that_ended_is_unknown(lc_thread_view *view, pthread_t thread)
{
    lc_thread_reading reading;
    const uint64_t last_ns = view->last_cpu_ns;
    give('e');
    CHECK(pthread_join(thread, NULL) == 0);
    while (lc_thread_state_letter(atomic_load(&tid)) != 0) {
        usleep(1000); /* joined a moment before the kernel forgets it */
    }
    lc_thread_view_read(view, last_ns, false, &reading);
    CHECK(!reading.complete && reading.syscall.number == LC_SYSCALL_UNKNOWN);
}

/* A program without a standard input that opens one gets the number that it expects. */
static void a_view_has_no_number_of_a_standard_stream(void)
{
    lc_thread_view view;
    const int kept = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 10);
    CHECK(kept >= 10 && close(STDIN_FILENO) == 0);
    lc_thread_view_open(&view, (uint64_t)syscall(SYS_gettid));
    CHECK(fcntl(STDIN_FILENO, F_GETFD) == -1);
    lc_thread_view_close(&view);
    CHECK(dup2(kept, STDIN_FILENO) == STDIN_FILENO && close(kept) == 0);
}

int main(void)
{
    pthread_t thread;
    lc_thread_view view;
    if (access("/proc/self/syscall", R_OK) != 0 || !lc_thread_clock_is_fine()) {
        printf("skipped: this kernel does not tell\n");
        return 0;
    }
    CHECK(pipe(orders) == 0 && pthread_create(&thread, NULL, work, NULL) == 0);
    while (atomic_load(&tid) == 0) {
        usleep(1000);
    }
    lc_thread_view_open(&view, atomic_load(&tid));
    a_sleeper_is_the_same_each_time(&view);
    a_runner_is_running_and_its_time_goes_on(&view);
    its_priority_is_its_own();
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* they make a fork of a vfork */
    uninterruptible_sleep_is_told_apart_and_left_again(&view);
#endif
    a_thread_that_ended_is_unknown(&view, thread);
    lc_thread_view_close(&view);
    a_view_has_no_number_of_a_standard_stream();
    return 0;
}
