#include "core/host/spawn_apart.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/clock/clock.h"
#include "core/host/own_thread.h"
#include "core/host/process_facts.h"

/* The helpers run in the caller's memory beside its threads: they make system calls and nothing else, past
 * every wrapper that keeps books (sanitizers', LD_PRELOADed ones) and past errno, which is a thread's of
 * ours. */
#if defined(__clang__)
#define PLAIN __attribute__((no_sanitize("address", "thread", "undefined")))
#else
#define PLAIN __attribute__((no_sanitize("address"), no_sanitize("thread"), no_sanitize("undefined")))
#endif

/* The thread sanitizer's `clone` keeps books of the thread that it takes the helper for. */
#if defined(__GLIBC__)
extern int __clone(int (*)(void *), void *, int, void *, ...);
#else
#define __clone clone
#endif

enum { NICE = 10, KERNEL_NICE = 20 }; /* getpriority answers the latter less what it is */
enum { SIGNALS = 64, SIGNAL_SET_BYTES = 8, SIGACTION_BYTES_MAX = 64 };
enum { STACK_BYTES = 64 * 1024, STACKS_BYTES = 2 * STACK_BYTES };
#define LOOK_NS 2000000                  /* between looks whether the process changes its ids */
#define PATIENCE_NS UINT64_C(5000000000) /* for the execve; then it is killed */
/* for the end of one that was killed: it may be in an uninterruptible wait */
#define DYING_NS UINT64_C(200000000)

typedef struct {
    pid_t of; /* the process that made it: in a forked child nothing clears `inside` */
    const char *file;
    char *const *argv;
    char *const *envp;
    char *second_stack;
    pid_t pid; /* of the new program */
    int error;
    bool is_filtered; /* by seccomp */
    /* not 0: it is in our memory. The kernel clears it and wakes, as it executes or ends */
    _Atomic uint32_t inside;
} task;

/* ---- in the helpers -------------------------------------------------------------------------- */

/* A system call whose error is its negative result. */
PLAIN static long call(long number, long a, long b, long c, long d)
{
#if defined(__x86_64__)
    long result;
    register long fourth __asm__("r10") = d;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth)
                     : "rcx", "r11", "memory");
    return result;
#elif defined(__aarch64__)
    register long which __asm__("x8") = number;
    register long first __asm__("x0") = a;
    register long second __asm__("x1") = b;
    register long third __asm__("x2") = c;
    register long fourth __asm__("x3") = d;
    __asm__ volatile("svc 0" : "+r"(first) : "r"(which), "r"(second), "r"(third), "r"(fourth) : "memory");
    return first;
#else
    const long result = syscall(number, a, b, c, d);
    return result < 0 ? -errno : result;
#endif
}

/* Descriptors 0 to 2; the number that it was opened as is closed with all others. */
PLAIN static long use_null_device(void)
{
    const long null = call(SYS_openat, AT_FDCWD, (long)"/dev/null", O_RDWR, 0);
    long error = null < 0 ? null : 0;
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO && error >= 0; fd++) {
        error = fd == null ? 0 : call(SYS_dup3, null, fd, 0, 0);
    }
    return error < 0 ? error : 0;
}

/* Filters of hardened services have no such call, and may end who makes it; with a core, which has our memory
 * in it, and before Linux 5.16 ends all who share that. */
PLAIN static void lower_priority(void)
{
    const struct sched_param ordinary = {0};
    if (call(SYS_getpriority, PRIO_PROCESS, 0, 0, 0) > KERNEL_NICE - NICE) { /* what is nicer stays so */
        call(SYS_setpriority, PRIO_PROCESS, 0, NICE, 0);
    }
    /* the program's may be a real-time one */
    call(SYS_sched_setscheduler, 0, SCHED_OTHER, (long)&ordinary, 0);
}

PLAIN static int become(void *argument)
{
    task *const own = argument;
    /* the kernel's: SIG_DFL, no flags */
    const uint64_t default_action[SIGACTION_BYTES_MAX / sizeof(uint64_t)] = {0};
    const uint64_t none = 0;
    for (int number = 1; number <= SIGNALS; number++) {
        /* not of SIGKILL, SIGSTOP */
        call(SYS_rt_sigaction, number, (long)default_action, 0, SIGNAL_SET_BYTES);
    }
    call(SYS_setsid, 0, 0, 0, 0);
    if (!own->is_filtered) {
        lower_priority();
    }
    call(SYS_umask, 0077, 0, 0, 0);
    long error = use_null_device();
    if (error == 0) {
#if defined(SYS_close_range)
        /* from Linux 5.9; before, what is not close-on-exec stays */
        call(SYS_close_range, STDERR_FILENO + 1, (long)~0U, 0, 0);
#endif
        call(SYS_chdir, (long)"/", 0, 0, 0);
        call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&none, 0, SIGNAL_SET_BYTES);
        error = call(SYS_execve, (long)own->file, (long)own->argv, (long)own->envp, 0);
    }
    own->error = (int)-error;
    call(SYS_exit_group, 127, 0, 0, 0);
    return 127;
}

/* With exit signal 0: until it executes, no plain wait of the program's sees it, and no SIGCHLD comes at
 * its end. */
PLAIN static void make(task *own, char *stack)
{
    own->pid = __clone(become, stack, CLONE_VM | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID, own,
                       &own->inside, NULL, &own->inside);
}

/* The one in between, whose end makes the other an orphan. */
PLAIN static int between(void *argument)
{
    task *const own = argument;
    make(own, own->second_stack);
    call(SYS_exit_group, own->pid < 0, 0, 0, 0);
    return 0;
}

/* ---- the one that waits for them ------------------------------------------------------------ */

/* What still waits for a disk in our memory, or NULL: at most one. */
static _Atomic(task *) stuck;

/* Those that are children of this process, as far as there is room: one that comes beside another ends
 * soon. */
enum { CHILDREN = 4 };
static struct {
    _Atomic pid_t of;       /* the process that made it: a forked child has none */
    _Atomic pid_t pid;      /* 0: none */
    _Atomic uint64_t began; /* its start, in clock ticks: the number may be given out again */
} children[CHILDREN];

static void wait_for(pid_t pid)
{
    while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR) {
    }
}

/* glibc has every thread change its users and groups by a signal, 33, that waits here while it is blocked;
 * musl uses 34. Neither has a name. */
#define ID_SIGNALS (UINT64_C(3) << 32)

static bool changes_ids(void)
{
    uint64_t pending = 0;
    syscall(SYS_rt_sigpending, &pending, SIGNAL_SET_BYTES);
    return (pending & ID_SIGNALS) != 0;
}

/* Waits a moment for it to leave our memory. False: it has not. The kernel wakes without FUTEX_PRIVATE. */
static bool has_left(task *one)
{
    const uint32_t inside = atomic_load(&one->inside);
    const struct timespec a_moment = {.tv_nsec = LOOK_NS};
    if (inside != 0) {
        syscall(SYS_futex, &one->inside, FUTEX_WAIT, inside, &a_moment, NULL, 0);
    }
    return atomic_load(&one->inside) == 0;
}

static bool has_ended(pid_t between_pid)
{
    const struct timespec a_moment = {.tv_nsec = LOOK_NS};
    pid_t ended = waitpid(between_pid, NULL, __WALL | WNOHANG);
    if (ended == 0) {
        nanosleep(&a_moment, NULL);
        ended = waitpid(between_pid, NULL, __WALL | WNOHANG);
    }
    return ended == between_pid || (ended < 0 && errno == ECHILD);
}

/* No helper is left that could execute; what is in an uninterruptible wait stays in our memory until that
 * is over. */
static void kill_helpers(task *one, pid_t between_pid)
{
    const uint64_t until = lc_now_ns() + DYING_NS;
    if (between_pid != 0) {
        (void)kill(between_pid, SIGKILL);
        wait_for(between_pid);
    }
    const pid_t inside = (pid_t)atomic_load(&one->inside);
    if (inside != 0) {
        (void)kill(inside, SIGKILL);
    }
    while (!has_left(one) && lc_now_ns() < until) {
    }
}

/* 0: it has executed; or an errno. */
static int watch_over(task *one, pid_t between_pid)
{
    const uint64_t until = lc_now_ns() + PATIENCE_NS;
    for (;;) {
        if (between_pid != 0 && has_ended(between_pid)) {
            between_pid = 0;
        }
        if (between_pid == 0 && has_left(one)) {
            return one->pid <= 0 ? EAGAIN : one->error; /* clone(2) was refused to the one in between */
        }
        const bool is_there = between_pid != 0 || atomic_load(&one->inside) != 0;
        if (is_there && (changes_ids() || lc_now_ns() >= until)) {
            kill_helpers(one, between_pid);
            return EINPROGRESS;
        }
    }
}

/* Until the helper has left our memory, this thread does not take the signal by which another one changes
 * the users and groups of all: `setuid` waits for it, some milliseconds, or until the helper is killed. So
 * the thread that calls it goes on with fewer rights only when no helper is in its memory (of several
 * threads the C library changes the others first). All other signals are blocked for the clone alone, as
 * no handler of the program's may run in a helper. */
static int start(task *one, bool is_child)
{
    const uint64_t all = ~(uint64_t)0;
    uint64_t before, meanwhile;
    pid_t between_pid = 0;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, SIGNAL_SET_BYTES);
    char *const stack = one->second_stack - STACK_BYTES;
    if (is_child) {
        make(one, stack);
    } else {
        between_pid = __clone(between, stack, CLONE_VM, one);
    }
    /* watch_over() sees whether the one in between has failed */
    int error = (is_child ? one->pid : between_pid) < 0 ? errno : 0;
    meanwhile = before | ID_SIGNALS;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &meanwhile, NULL, SIGNAL_SET_BYTES);
    error = error ? error : watch_over(one, between_pid);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, SIGNAL_SET_BYTES);
    return error;
}

static bool has(unsigned i, pid_t pid)
{
    return atomic_load(&children[i].of) == getpid() && atomic_load(&children[i].pid) == pid;
}

static void note_child(pid_t pid)
{
    unsigned i = 0;
    while (i < CHILDREN - 1u && atomic_load(&children[i].of) == getpid() && !has(i, 0)) {
        i++;
    }
    atomic_store(&children[i].began, lc_process_start(pid));
    atomic_store(&children[i].pid, pid);
    atomic_store(&children[i].of, getpid());
}

/* Errors of mmap(2): NULL. */
static task *make_task(const char *file, char *const argv[], char *const envp[])
{
    char *const memory =
        mmap(NULL, STACKS_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (memory == MAP_FAILED) {
        return NULL;
    }
    task *const one = (task *)memory; /* below the first stack, which never comes so far */
    *one = (task){.of = getpid(),
                  .file = file,
                  .argv = argv,
                  .envp = envp,
                  .second_stack = memory + STACKS_BYTES,
                  .is_filtered = lc_own_thread_is_filtered()};
    return one;
}

static bool reaps_orphans(void)
{
    int is_subreaper = 0;
    return getpid() == 1 || (prctl(PR_GET_CHILD_SUBREAPER, &is_subreaper, 0, 0, 0) == 0 && is_subreaper != 0);
}

/* False: a helper is in our memory still. */
static bool is_free(void)
{
    task *const before = atomic_exchange(&stuck, NULL);
    if (before == NULL) {
        return true;
    }
    if (before->of == getpid() && atomic_load(&before->inside) != 0) {
        atomic_store(&stuck, before);
        return false;
    }
    munmap(before, STACKS_BYTES);
    return true;
}

int lc_spawn_apart(const char *file, char *const argv[], char *const envp[])
{
    lc_spawned_children_bury();
    if (!is_free()) {
        return EINPROGRESS;
    }
    task *const one = make_task(file, argv, envp);
    if (one == NULL) {
        return errno;
    }
    const bool is_child = reaps_orphans();
    const int error = start(one, is_child);
    if (is_child && one->pid > 0 && one->error != 0) {
        wait_for(one->pid); /* it could not execute, and is about to end */
    } else if (is_child && one->pid > 0) {
        note_child(one->pid);
    }
    if (atomic_load(&one->inside) != 0) {
        atomic_store(&stuck, one);
    } else {
        munmap(one, STACKS_BYTES);
    }
    return error;
}

bool lc_is_spawned_child(pid_t pid)
{
    bool found = false;
    for (unsigned i = 0; i < CHILDREN && pid > 0; i++) {
        found = found || has(i, pid);
    }
    return found;
}

static void bury(unsigned i)
{
    pid_t pid = atomic_load(&children[i].pid);
    siginfo_t ended = {0};
    if (pid <= 0 || !has(i, pid) ||
        (waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0 && ended.si_pid == 0)) {
        return;
    }
    const bool is_it = ended.si_pid == pid && lc_process_start(pid) == atomic_load(&children[i].began);
    /* else the program has waited for it */
    if (atomic_compare_exchange_strong(&children[i].pid, &pid, 0) && is_it) {
        wait_for(pid);
    }
}

void lc_spawned_children_bury(void)
{
    for (unsigned i = 0; i < CHILDREN; i++) {
        bury(i);
    }
}
