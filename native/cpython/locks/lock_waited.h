/* The lock that a thread waits for. */
#ifndef LOOPCANARY_LOCK_WAITED_H
#define LOOPCANARY_LOCK_WAITED_H

#include "cpython/walker/frame_values.h"

typedef struct {
    lc_lock_kind kind;
    uint64_t object; /* the lock; of LC_LOCK_THREAD the thread's handle, 0 where it is a lock of 3.11 or 3.12 */
    uint64_t module; /* LC_LOCK_MODULE: str, the module's name */
} lc_found_lock;

/* The lock whose acquire the thread sleeps in; false: none that is known. */
bool lc_lock_waited_for(lc_cpython_source *source, uint64_t thread_state, uint64_t futex, lc_found_lock *found);

/* Up to 3.13: whether this futex lies in the lock (no handle of a thread). It may be a SemLock, whose semaphore is at the same
 * place. */
bool lc_sleeps_in_lock(const lc_cpython_source *source, uint64_t lock, uint64_t futex);

#endif
