/* A clock that stands, in the C library's place: for tests of schedules, ages and deadlines. However long a crowded
 * machine does not run such a test, no time passes for what it tests. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static _Atomic uint64_t still_ns; /* of CLOCK_MONOTONIC and CLOCK_BOOTTIME; 0: they are the machine's */
static time_t still_wall;         /* seconds, of CLOCK_REALTIME; 0: it is the machine's */

/* Each reading of a clock that stands is a nanosecond later than the one before: no two are the same. */
int clock_gettime(clockid_t clock, struct timespec *out)
{
    if (clock == CLOCK_REALTIME && still_wall != 0) {
        *out = (struct timespec){.tv_sec = still_wall};
        return 0;
    }
    if ((clock != CLOCK_MONOTONIC && clock != CLOCK_BOOTTIME) || atomic_load(&still_ns) == 0) {
        return (int)syscall(SYS_clock_gettime, clock, out);
    }
    const uint64_t now = atomic_fetch_add(&still_ns, 1);
    out->tv_sec = (time_t)(now / 1000000000u);
    out->tv_nsec = (long)(now % 1000000000u);
    return 0;
}

static inline void let_clock_run(void) { atomic_store(&still_ns, 0); }

/* Where it is now. Waits of the kernel with a deadline of this clock are the machine's all the same. */
static inline void stop_clock(void)
{
    struct timespec now;
    let_clock_run();
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    atomic_store(&still_ns, (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec);
}

/* Any thread. */
static inline void pass_time(uint64_t ns) { (void)atomic_fetch_add(&still_ns, ns); }
