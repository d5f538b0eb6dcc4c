/* The CPU time of a thread: if it did not advance, the thread did not run, and whatever was read of
 * its frames meanwhile was one state. The kernel accounts it in nanoseconds at every switch, and up
 * to now for a thread that runs. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Of thread `tid` of this process. One system call. False: no such thread. */
static inline bool lc_thread_cpu_ns(uint32_t tid, uint64_t *ns)
{
    /* What pthread_getcpuclockid makes, without needing a pthread_t: the complement of the id over
     * "scheduler time" (2) and "of a thread" (4); linux/posix-timers.h, stable ABI. */
    const clockid_t clock = (clockid_t)(~tid << 3 | 6u);
    struct timespec time;
    if (tid == 0 || clock_gettime(clock, &time) != 0) {
        return false;
    }
    *ns = (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
    return true;
}

/* Whether the clock shows that a thread ran even if it ran for a system call only. One that goes in steps
 * (of a timer, in a kernel that imitates Linux) proves nothing. Asks about the calling thread, which runs. */
static inline bool lc_thread_clock_is_fine(void)
{
    enum { LOOKS = 16 };
    const uint32_t tid = (uint32_t)syscall(SYS_gettid);
    unsigned advanced = 0;
    uint64_t before = 0;
    for (unsigned i = 0; i < LOOKS; i++) {
        uint64_t now = 0;
        if (!lc_thread_cpu_ns(tid, &now)) {
            return false;
        }
        advanced += now != before;
        before = now;
    }
    return advanced > LOOKS / 2;
}
