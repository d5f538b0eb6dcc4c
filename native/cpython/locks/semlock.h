/* Locks between processes: `_multiprocessing.SemLock`, which is behind all locks, conditions and queues of multiprocessing. */
#ifndef LOOPCANARY_SEMLOCK_H
#define LOOPCANARY_SEMLOCK_H

#include "cpython/source/cpython_source.h"

/* The SemLock behind a slot of a frame, or to which the method in it is bound, in whose semaphore this futex lies; its kind.
 * LC_LOCK_NONE: it is none. */
lc_lock_kind lc_semlock_behind(lc_cpython_source *source, uint64_t slot, uint64_t futex, uint64_t *lock);

/* Ident of the thread of this process that acquired it and, as far as this process knows, has not released it; 0: there is none,
 * or it is a semaphore, which many may hold.
 *
 * Of an RLock that is its holder: only it can release it. A Lock may be released by any process, and each counts for itself:
 * where another one has done so, this is a thread that held it once. A child that `os.fork` makes while the thread holds the lock
 * counts it for itself, too; one of multiprocessing's does not. */
uint64_t lc_semlock_owner(const lc_cpython_source *source, uint64_t lock, lc_lock_kind kind);

/* Whether this function, called with `self`, ends a `with` block of the lock: multiprocessing's objects in Python are around
 * SemLocks. */
bool lc_semlock_is_exit(lc_cpython_source *source, uint64_t function, uint64_t self, uint64_t lock);

static inline bool lc_is_semlock(lc_lock_kind kind)
{
    return kind == LC_LOCK_SHARED || kind == LC_LOCK_SHARED_RECURSIVE || kind == LC_LOCK_SHARED_SEMAPHORE;
}

#endif
