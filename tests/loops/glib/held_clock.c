/* Preloaded: the main thread, when it asks what time it had on the CPU, is held until it is let go.
 * loopcanary asks when a handler that took long ends. */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { LETS_GO, WAITS_FOR_IT, HOLDS_IT };

_Atomic int held_clock;

int clock_gettime(clockid_t clock, struct timespec *time)
{
    int state = WAITS_FOR_IT;
    if (clock == CLOCK_THREAD_CPUTIME_ID && syscall(SYS_gettid) == getpid() &&
        atomic_compare_exchange_strong(&held_clock, &state, HOLDS_IT)) {
        while (atomic_load(&held_clock) == HOLDS_IT) {
            usleep(1000);
        }
    }
    return (int)syscall(SYS_clock_gettime, clock, time);
}
