/* Who else waits for the lock that the stalled thread waits for. */
#ifndef LOOPCANARY_LOCK_WAITERS_H
#define LOOPCANARY_LOCK_WAITERS_H

#include "core/flight/flight_format.h"
#include "core/watchdog/frame_source.h"

/* Threads that are asked, at most: each costs the reading of one file, some 8 us. */
#define LC_WAITER_THREADS_MAX 64u

/* Looks for other threads of the interpreter that sleep on a futex for the lock at `object`, and keeps them in the slot if
 * they are as many as at any look before. The watchdog's thread; no allocation. `thread_state`, `tid`: of the stalled
 * thread. */
void lc_lock_waiters_put(lc_frame_source *source, uint64_t thread_state, uint64_t tid, uint64_t object, lc_slot *slot);

#endif
