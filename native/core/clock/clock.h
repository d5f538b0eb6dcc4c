/* Time: nanoseconds of CLOCK_MONOTONIC, and ticks, the cheapest counter that runs along with it.
 *
 * Ticks are the time stamp counter (x86-64, where the CPU says it is invariant and the kernel trusts
 * it as its own clock source), the virtual counter (aarch64), or else nanoseconds. Which one is
 * chosen once, before any other thread looks; a counter that proves to be none is left for nanoseconds in its
 * place and at its rate. Reading ticks is a load and an instruction; no call, no lock; any thread, any
 * context.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/flight/flight_format.h"

static inline uint64_t lc_least(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* A reading of both clocks at (nearly) the same moment: the closest of a few tries. */
typedef struct {
    uint64_t ns;
    uint64_t ticks;
} lc_instant;

lc_instant lc_clock_pair(void);

/* The pairing of the first choice: the rate between it and a later one needs no wait for a second. */
extern lc_instant lc_clock_early; /* written by lc_clock_choose and lc_clock_leave_counter only */

/* What stands in for a counter that was left: from when on, and its rate. */
typedef struct {
    lc_instant from; /* 0: none was */
    uint64_t rate_q32;
} lc_clock_stand_in;

extern _Atomic lc_clock_kind lc_clock_chosen; /* written by lc_clock_choose and lc_clock_leave_counter only */
extern lc_clock_stand_in lc_clock_left;

/* Chooses and answers the kind of ticks. Not thread-safe; idempotent. */
lc_clock_kind lc_clock_choose(void);

/* From `now` on ticks are CLOCK_MONOTONIC, told in ticks of this rate: what was begun before goes on. One
 * thread. */
void lc_clock_leave_counter(lc_instant now, uint64_t rate_q32);

static inline uint64_t lc_ticks_to_ns(uint64_t ticks, uint64_t rate_q32)
{
    const unsigned __int128 half = 1u << 31; /* to the nearest: 10 ms in ticks and back is 10 ms */
    return (uint64_t)(((unsigned __int128)ticks * rate_q32 + half) >> 32);
}

static inline uint64_t lc_ns_to_ticks(uint64_t ns, uint64_t rate_q32)
{
    const uint64_t rate = rate_q32 ? rate_q32 : 1u;
    const unsigned __int128 ticks = (((unsigned __int128)ns << 32) + rate / 2u) / rate;
    return ticks > UINT64_MAX ? UINT64_MAX : (uint64_t)ticks;
}

/* 0: the system has no such clock. */
static inline uint64_t lc_clock_read_ns(clockid_t clock)
{
    struct timespec t;
    return clock_gettime(clock, &t) == 0 ? (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec : 0;
}

static inline uint64_t lc_now_ns(void) { return lc_clock_read_ns(CLOCK_MONOTONIC); }

/* Whether the next reading is one of a counter, by lc_counter_ticks: for code that keeps calls out of its
 * short way. */
static inline bool lc_counter_is_used(void)
{
    const lc_clock_kind chosen = atomic_load_explicit(&lc_clock_chosen, memory_order_acquire);
#if defined(__x86_64__)
    return __builtin_expect(chosen == LC_CLOCK_TSC, 1);
#elif defined(__aarch64__)
    return __builtin_expect(chosen == LC_CLOCK_CNTVCT, 1);
#else
    (void)chosen;
    return false;
#endif
}

static inline uint64_t lc_counter_ticks(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
    return 0;
#endif
}

static inline uint64_t lc_now_ticks(void)
{
    if (lc_counter_is_used()) {
        return lc_counter_ticks();
    }
    const uint64_t ns = lc_now_ns();
    const lc_clock_stand_in *left = &lc_clock_left;
    return left->from.ns == 0 ? ns : left->from.ticks + lc_ns_to_ticks(ns - left->from.ns, left->rate_q32);
}

/* The rate, in nanoseconds a tick times 2^32, from two pairings; `fallback` where they are too close
 * together to tell. */
uint64_t lc_clock_rate_q32(lc_instant from, lc_instant to, uint64_t fallback);

/* Nanoseconds of a tick reading, reckoned from a pairing. */
static inline uint64_t lc_clock_ns(lc_instant at, uint64_t ticks, uint64_t rate_q32)
{
    if (ticks >= at.ticks) {
        return at.ns + lc_ticks_to_ns(ticks - at.ticks, rate_q32);
    }
    const uint64_t ago = lc_ticks_to_ns(at.ticks - ticks, rate_q32);
    return ago < at.ns ? at.ns - ago : 0u;
}

/* ---- the CPU time of a thread -----------------------------------------------------------------------
 * The CPU time of a thread: if it did not advance, the thread did not run, and whatever was read of
 * its frames meanwhile was one state. The kernel accounts it in nanoseconds at every switch, and up
 * to now for a thread that runs. */

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
