#include "core/clock/clock.h"

#include <fcntl.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

_Atomic lc_clock_kind lc_clock_chosen = LC_CLOCK_MONOTONIC;
lc_clock_stand_in lc_clock_left;
lc_instant lc_clock_early;

#if defined(__x86_64__)
/* The CPU promises a constant rate in all power states (Intel SDM 18.17.1: CPUID 80000007H, EDX 8)... */
static bool cpu_counter_is_invariant(void)
{
    unsigned eax, ebx, ecx, edx;
    return __get_cpuid(0x80000007u, &eax, &ebx, &ecx, &edx) && (edx & (1u << 8));
}

/* ...and the kernel has watched it and found it good on every socket. */
static bool kernel_trusts_counter(void)
{
    char name[16] = {0};
    const int fd =
        open("/sys/devices/system/clocksource/clocksource0/current_clocksource", O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    const ssize_t got = read(fd, name, sizeof name - 1);
    close(fd);
    return got == 4 && memcmp(name, "tsc\n", 4) == 0;
}
#endif

lc_clock_kind lc_clock_choose(void)
{
    lc_clock_left = (lc_clock_stand_in){{0, 0}, 0};
#if defined(__x86_64__)
    lc_clock_chosen =
        cpu_counter_is_invariant() && kernel_trusts_counter() ? LC_CLOCK_TSC : LC_CLOCK_MONOTONIC;
#elif defined(__aarch64__)
    /* Architecturally constant, and readable by programs under Linux. */
    lc_clock_chosen = LC_CLOCK_CNTVCT;
#endif
    if (lc_clock_early.ns == 0) {
        lc_clock_early = lc_clock_pair();
    }
    return lc_clock_chosen;
}

void lc_clock_leave_counter(lc_instant now, uint64_t rate_q32)
{
    lc_clock_left = (lc_clock_stand_in){now, rate_q32};
    lc_clock_early = (lc_instant){0, 0};
    atomic_store_explicit(&lc_clock_chosen, LC_CLOCK_MONOTONIC, memory_order_release);
}

lc_instant lc_clock_pair(void)
{
    enum { TRIES = 5 };
    lc_instant best = {0, 0};
    uint64_t best_gap = UINT64_MAX;
    for (int i = 0; i < TRIES; i++) {
        const uint64_t before = lc_now_ticks();
        const uint64_t ns = lc_now_ns();
        const uint64_t after = lc_now_ticks();
        if (after - before < best_gap) {
            best_gap = after - before;
            best = (lc_instant){ns, before + (after - before) / 2};
        }
    }
    return best;
}

uint64_t lc_clock_rate_q32(lc_instant from, lc_instant to, uint64_t fallback)
{
    enum { SHORTEST_NS = 1000000 }; /* a pairing is good to ~50 ns: 5e-5 of this */
    if (to.ns < from.ns + SHORTEST_NS || to.ticks <= from.ticks) {
        return fallback;
    }
    return (uint64_t)(((unsigned __int128)(to.ns - from.ns) << 32) / (to.ticks - from.ticks));
}
