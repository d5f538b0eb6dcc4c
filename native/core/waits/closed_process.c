
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/clock/clock.h"
#include "core/host/kept_file.h"
#include "core/host/thread_view.h"
#include "core/waits/wait_target.h"

enum { SOON_MS = 60 * 1000 };

bool lc_waits_for_own_futex(const lc_syscall_fields *call)
{
    const uint64_t operation = call->args[1] & FUTEX_CMD_MASK;
    return call->number == SYS_futex && (call->args[1] & FUTEX_PRIVATE_FLAG) != 0 && call->args[3] == 0 &&
           (operation == FUTEX_WAIT || operation == FUTEX_WAIT_BITSET);
}

/* isatty would ask the file's system, which may be what hangs: a FUSE daemon that is gone, say. */
static bool is_input(uint64_t fd)
{
    lc_target target = {.kind = LC_TARGET_NONE};
    if (fd != STDIN_FILENO) {
        lc_descriptor_target(fd, &target);
    }
    return fd == STDIN_FILENO || target.kind == LC_TARGET_TERMINAL;
}

/* Whether it polls until something comes, or for a timer that is far away: what a loop does soon may let another
 * thread go on. Timeouts in memory are not looked at. */
static bool polls(const lc_syscall_fields *call)
{
    const lc_shape_kind kind = lc_syscall_shape_of(call->number).kind;
    switch (call->number) {
#ifdef SYS_poll
    case SYS_poll:
        return (uint32_t)call->args[2] > SOON_MS; /* -1: none */
#endif
#ifdef SYS_epoll_wait
    case SYS_epoll_wait:
#endif
    case SYS_epoll_pwait:
        return (uint32_t)call->args[3] > SOON_MS;
    default:
        return (kind == LC_SHAPE_POLL && call->args[2] == 0) ||
               (kind == LC_SHAPE_EPOLL && call->args[3] == 0) ||
               (kind == LC_SHAPE_SELECT && call->args[4] == 0);
    }
}

static bool is_ours(uint64_t tid)
{
    static const char ours[] = "loopcanary\n"; /* as our threads name themselves */
    char path[64], name[sizeof ours];
    snprintf(path, sizeof path, "/proc/self/task/%llu/comm", (unsigned long long)tid);
    return lc_read_unnoticed(path, name, sizeof name) == sizeof ours - 1u &&
           memcmp(name, ours, sizeof ours - 1u) == 0;
}

static void add(uint64_t tid, bool main_polls, lc_process_waits *out)
{
    if (is_ours(tid)) {
        return;
    }
    const lc_syscall_fields call = lc_thread_call(tid);
    const bool is_main = tid == (uint64_t)getpid();
    const bool may =
        main_polls && (is_main ? polls(&call) : call.number == SYS_read && is_input(call.args[0]));
    out->is_closed &= may || lc_waits_for_own_futex(&call);
    uint64_t cpu_ns = 0;
    out->is_known &= lc_thread_cpu_ns((uint32_t)tid, &cpu_ns);
    out->cpu_ns += cpu_ns;
}

void lc_process_waits_look(bool main_polls, bool whole, lc_process_waits *out)
{
    lc_thread_list threads;
    lc_thread_list_read(&threads);
    *out = (lc_process_waits){.is_closed = true, .is_known = threads.length > 0};
    uint64_t tid;
    while ((whole || out->is_closed) && (tid = lc_thread_list_next(&threads)) != 0) {
        add(tid, main_polls, out);
    }
    out->is_closed &= out->is_known;
}
