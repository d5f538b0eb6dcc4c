#include "core/host/spawn_apart.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Both helpers run in the caller's memory while it waits, as after vfork(2): they make system calls and nothing else, past
 * every wrapper that keeps books (sanitizers', LD_PRELOADed ones). */
#if defined(__clang__)
#define PLAIN __attribute__((no_sanitize("address", "thread", "undefined")))
#else
#define PLAIN __attribute__((no_sanitize("address"), no_sanitize("thread"), no_sanitize("undefined")))
#endif

enum { STACK_BYTES = 64 * 1024, SIGNALS = 64, SIGNAL_SET_BYTES = 8, SIGACTION_BYTES_MAX = 64 };

typedef struct {
    const char *file;
    char *const *argv;
    char *const *envp;
    const char *log;
    char *second_stack;
    volatile int error;
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
    for (int number = 1; number <= SIGNALS; number++) {
        syscall(SYS_rt_sigaction, number, default_action, NULL, SIGNAL_SET_BYTES); /* not of SIGKILL, SIGSTOP */
    }
    syscall(SYS_setsid);
    if (open_as("/dev/null", O_RDONLY, STDIN_FILENO) == 0 && open_as("/dev/null", O_WRONLY, STDOUT_FILENO) == 0 &&
        open_as(own->log, O_WRONLY | O_CREAT | O_TRUNC | O_NOCTTY | O_NOFOLLOW, STDERR_FILENO) == 0) {
#if defined(SYS_close_range)
        syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, 0); /* from Linux 5.9; before, what is not close-on-exec stays */
#endif
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

int lc_spawn_apart(const char *file, char *const argv[], char *const envp[], const char *log)
{
    char *const stacks = mmap(NULL, (size_t)2 * STACK_BYTES, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stacks == MAP_FAILED) {
        return errno;
    }
    task one = {file, argv, envp, log, stacks + 2 * STACK_BYTES, 0};
    /* No handler of the program's runs in the helpers. */
    const uint64_t all = ~(uint64_t)0;
    uint64_t before;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, SIGNAL_SET_BYTES);
    const pid_t helper = clone(between, stacks + STACK_BYTES, CLONE_VM | CLONE_VFORK, &one);
    if (helper < 0) {
        one.error = errno;
    } else {
        while (waitpid(helper, NULL, __WCLONE) < 0 && errno == EINTR) {
        }
    }
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, SIGNAL_SET_BYTES);
    munmap(stacks, (size_t)2 * STACK_BYTES);
    return one.error;
}
