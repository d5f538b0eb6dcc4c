#include "core/host/spawn_apart.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The helpers run in the caller's memory, as after vfork(2): they make system calls and nothing else, past
 * every wrapper that keeps books (sanitizers', LD_PRELOADed ones). */
#if defined(__clang__)
#define PLAIN __attribute__((no_sanitize("address", "thread", "undefined")))
#else
#define PLAIN __attribute__((no_sanitize("address"), no_sanitize("thread"), no_sanitize("undefined")))
#endif

enum { NICE = 10, KERNEL_NICE = 20 }; /* getpriority answers the latter less what it is */
enum { SIGNALS = 64, SIGNAL_SET_BYTES = 8, SIGACTION_BYTES_MAX = 64 };
enum { STACK_BYTES = 64 * 1024, STACKS_BYTES = 2 * STACK_BYTES, LOCAL_BYTES = 16 * 1024 };

typedef struct {
    const char *file;
    char *const *argv;
    char *const *envp;
    const char *log;
    char *second_stack;
    pid_t program;
    volatile int error;
    unsigned is_done; /* a futex */
} task;

PLAIN static int open_as(const char *path, int flags, int target)
{
    const long found = syscall(SYS_openat, AT_FDCWD, path, flags, 0600);
    if (found < 0) {
        return -1;
    }
    /* Its first number is closed with all others. */
    return found == target || syscall(SYS_dup3, found, target, 0) >= 0 ? 0 : -1;
}

/* The new program's process. */
PLAIN static int become(void *argument)
{
    task *const own = argument;
    uint64_t default_action[SIGACTION_BYTES_MAX / sizeof(uint64_t)] = {0}; /* the kernel's: SIG_DFL, no flags */
    const uint64_t none = 0;
    const struct sched_param ordinary = {0};
    for (int number = 1; number <= SIGNALS; number++) {
        syscall(SYS_rt_sigaction, number, default_action, NULL, SIGNAL_SET_BYTES); /* not of SIGKILL, SIGSTOP */
    }
    syscall(SYS_setsid);
    if (syscall(SYS_getpriority, PRIO_PROCESS, 0) > KERNEL_NICE - NICE) { /* what is nicer stays so */
        syscall(SYS_setpriority, PRIO_PROCESS, 0, NICE);
    }
    syscall(SYS_sched_setscheduler, 0, SCHED_OTHER, &ordinary); /* the program's may be a real-time one */
    syscall(SYS_umask, 0077);
    if (open_as("/dev/null", O_RDONLY, STDIN_FILENO) == 0 && open_as("/dev/null", O_WRONLY, STDOUT_FILENO) == 0 &&
        open_as(own->log, O_WRONLY | O_CREAT | O_TRUNC | O_NOCTTY | O_NOFOLLOW, STDERR_FILENO) == 0) {
#if defined(SYS_close_range)
        syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, 0); /* from Linux 5.9; before, what is not close-on-exec stays */
#endif
        syscall(SYS_chdir, "/"); /* after the log's path */
        syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, SIGNAL_SET_BYTES);
        syscall(SYS_execve, own->file, own->argv, own->envp);
    }
    own->error = errno;
    syscall(SYS_exit_group, 127);
    return 127;
}

/* The one in between: makes the other, and ends when that executes or has failed. */
PLAIN static int between(void *argument)
{
    task *const own = argument;
    if (clone(become, own->second_stack, CLONE_VM | CLONE_VFORK | SIGCHLD, own) < 0) {
        own->error = errno;
    }
    syscall(SYS_exit_group, 0);
    return 0;
}

static inline char *thread_pointer(void)
{
    char *pointer;
#if defined(__x86_64__)
    __asm__("mov %%fs:0, %0" : "=r"(pointer));
#elif defined(__aarch64__)
    __asm__("mrs %0, tpidr_el0" : "=r"(pointer));
#else
    pointer = (char *)&errno;
#endif
    return pointer;
}

/* ---- where orphans become the program's children ------------------------------------------------------------------ */

/* Their parent, which stays until the new program's process has ended: a reaper of orphans with exit signal 0, which no plain wait of the
 * program's sees. It can execute nothing, which would give it back the usual signal (execve(2)), so it lives in the program's memory, with
 * nothing of its own but a stack and a place for errno; it ends with the program. */
PLAIN static int guard(void *argument)
{
    task *const own = argument;
    struct pollfd ends[2] = {{.events = POLLIN}, {.events = POLLIN}};
    const long is_closed = syscall(SYS_close_range, 0, ~0U, 0);
    ends[0].fd = (int)syscall(SYS_pidfd_open, own->program, 0);
    if (is_closed != 0 || ends[0].fd < 0) {
        own->error = ENOSYS; /* before Linux 5.9: it would keep the program's pipes open */
    } else {
        syscall(SYS_setsid);
        syscall(SYS_chdir, "/");
        syscall(SYS_prctl, PR_SET_NAME, "loopcanary", 0, 0, 0);
        syscall(SYS_prctl, PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
        const int made = clone(become, own->second_stack, CLONE_VM | CLONE_VFORK | SIGCHLD, own);
        ends[1].fd = made < 0 ? -1 : (int)syscall(SYS_pidfd_open, made, 0);
        own->error = made < 0 ? errno : own->error;
        if (own->error != 0) {
            syscall(SYS_wait4, -1, NULL, __WALL, NULL); /* it would be the program's to bury */
        }
    }
    const bool stays = own->error == 0;
    __atomic_store_n(&own->is_done, 1u, __ATOMIC_RELEASE);
    syscall(SYS_futex, &own->is_done, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    while (stays && syscall(SYS_ppoll, ends, 2, NULL, NULL, SIGNAL_SET_BYTES) >= 0 && ends[0].revents == 0 &&
           syscall(SYS_wait4, -1, NULL, __WALL, NULL) > 0) {
    }
    syscall(SYS_exit_group, 0);
    return 0;
}

/* Of the last guard; with another one in its place, which is rare, it stays a zombie to no harm. */
static struct {
    atomic_flag is_used; /* by a thread */
    pid_t of; /* the process that made it: a forked child has none */
    pid_t pid;
    void *memory;
    size_t bytes;
} last_guard = {.is_used = ATOMIC_FLAG_INIT};

static void note_guard(pid_t pid, void *memory, size_t bytes)
{
    if (!atomic_flag_test_and_set(&last_guard.is_used)) {
        last_guard.of = getpid();
        last_guard.pid = pid;
        last_guard.memory = memory;
        last_guard.bytes = bytes;
        atomic_flag_clear(&last_guard.is_used);
    }
}

static void forget_guard(void)
{
    if (atomic_flag_test_and_set(&last_guard.is_used)) {
        return;
    }
    if (last_guard.of == getpid() && waitpid(last_guard.pid, NULL, __WCLONE | WNOHANG) != 0) {
        munmap(last_guard.memory, last_guard.bytes);
        last_guard.of = 0;
    }
    atomic_flag_clear(&last_guard.is_used);
}

/* False: it has ended without a word. */
static bool wait_for_guard(task *own, pid_t guard_pid)
{
    const struct timespec a_moment = {.tv_nsec = 100000000};
    while (__atomic_load_n(&own->is_done, __ATOMIC_ACQUIRE) == 0) {
        syscall(SYS_futex, &own->is_done, FUTEX_WAIT_PRIVATE, 0, &a_moment, NULL, 0);
        if (__atomic_load_n(&own->is_done, __ATOMIC_ACQUIRE) == 0 && waitpid(guard_pid, NULL, __WCLONE | WNOHANG) != 0) {
            return false;
        }
    }
    return true;
}

static char *memory_of(size_t bytes)
{
    void *const memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

/* It shares no thread-local memory with its maker, which may end: its errno is among zeros of its own, as far from the thread pointer
 * as ours from ours. */
static int spawn_below_guard(const task *one)
{
    const ptrdiff_t to_errno = (char *)&errno - thread_pointer();
    const size_t apart = ((size_t)(to_errno < 0 ? -to_errno : to_errno) + LOCAL_BYTES) & ~(size_t)(LOCAL_BYTES - 1);
    const size_t bytes = STACKS_BYTES + 2u * apart + 2u * LOCAL_BYTES;
    char *const memory = memory_of(bytes);
    if (memory == NULL) {
        return errno;
    }
    task *const own = (task *)memory;
    char *const local = memory + STACKS_BYTES + apart + LOCAL_BYTES;
    *own = *one;
    own->program = getpid();
    own->second_stack = memory + STACKS_BYTES;
    *(void **)local = local; /* x86-64: the thread pointer is its first word */
    const pid_t made = clone(guard, memory + STACK_BYTES, CLONE_VM | CLONE_SETTLS, own, NULL, local, NULL);
    if (made >= 0 && wait_for_guard(own, made) && own->error == 0) {
        note_guard(made, memory, bytes);
        return 0;
    }
    const int error = made < 0 ? errno : own->error != 0 ? own->error : ECHILD;
    while (made >= 0 && waitpid(made, NULL, __WCLONE) < 0 && errno == EINTR) {
    }
    munmap(memory, bytes);
    return error;
}

static int spawn_and_leave(task *one)
{
    char *const stacks = memory_of(STACKS_BYTES);
    if (stacks == NULL) {
        return errno;
    }
    one->second_stack = stacks + STACKS_BYTES;
    const pid_t helper = clone(between, stacks + STACK_BYTES, CLONE_VM | CLONE_VFORK, one);
    if (helper < 0) {
        one->error = errno;
    } else {
        while (waitpid(helper, NULL, __WCLONE) < 0 && errno == EINTR) {
        }
    }
    munmap(stacks, STACKS_BYTES);
    return one->error;
}

static bool reaps_orphans(void)
{
    int is_subreaper = 0;
    return getpid() == 1 || (prctl(PR_GET_CHILD_SUBREAPER, &is_subreaper, 0, 0, 0) == 0 && is_subreaper != 0);
}

int lc_spawn_apart(const char *file, char *const argv[], char *const envp[], const char *log)
{
    task one = {.file = file, .argv = argv, .envp = envp, .log = log};
    /* No handler of the program's runs in the helpers. */
    const uint64_t all = ~(uint64_t)0;
    uint64_t before;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, SIGNAL_SET_BYTES);
    forget_guard();
    const int error = reaps_orphans() ? spawn_below_guard(&one) : spawn_and_leave(&one);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, SIGNAL_SET_BYTES);
    return error;
}
