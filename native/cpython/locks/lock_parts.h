/* What the files of this folder ask each other. No GIL, lock or allocation in any of it. */
#pragma once

#include "cpython/walker/frame_values.h"

/* ---- lock_waited.c: the lock that a thread waits for ----------------------------------------------- */

typedef struct {
    lc_lock_kind kind;
    /* the lock; of LC_LOCK_THREAD the thread's handle, 0 where it is a lock of 3.11 or 3.12 */
    uint64_t object;
    uint64_t module; /* LC_LOCK_MODULE: str, the module's name */
} lc_found_lock;

/* The lock whose acquire the thread sleeps in; false: none that is known. */
bool lc_lock_waited_for(lc_cpython_source *source, uint64_t thread_state, uint64_t futex,
                        lc_found_lock *found);

/* Up to 3.13: whether this futex lies in the lock (no handle of a thread). It may be a SemLock, whose
 * semaphore is at the same place. */
bool lc_sleeps_in_lock(const lc_cpython_source *source, uint64_t lock, uint64_t futex);

/* ---- semlock.c: locks between processes --------------------------------------------------------------
 * `_multiprocessing.SemLock` is behind all locks, conditions and queues of multiprocessing. */

/* The SemLock behind a slot of a frame, or to which the method in it is bound, in whose semaphore this
 * futex lies; its kind. LC_LOCK_NONE: it is none. */
lc_lock_kind lc_semlock_behind(lc_cpython_source *source, uint64_t slot, uint64_t futex, uint64_t *lock);

/* Ident of the thread of this process that acquired it and, as far as this process knows, has not released
 * it; 0: there is none, or it is a semaphore, which many may hold.
 *
 * Of an RLock that is its holder: only it can release it. A Lock may be released by any process, and each
 * counts for itself: where another one has done so, this is a thread that held it once. A child that
 * `os.fork` makes while the thread holds the lock counts it for itself, too; one of multiprocessing's does
 * not. */
uint64_t lc_semlock_owner(const lc_cpython_source *source, uint64_t lock, lc_lock_kind kind);

/* Whether this function, called with `self`, ends a `with` block of the lock: multiprocessing's objects in
 * Python are around SemLocks. */
bool lc_semlock_is_exit(lc_cpython_source *source, uint64_t function, uint64_t self, uint64_t lock);

static inline bool lc_is_semlock(lc_lock_kind kind)
{
    return kind == LC_LOCK_SHARED || kind == LC_LOCK_SHARED_RECURSIVE || kind == LC_LOCK_SHARED_SEMAPHORE;
}

/* ---- with_blocks.c: locks in whose `with` block a frame is ------------------------------------------ */

#define LC_MANAGERS_DEEP 4u /* context managers made of generators, one in the block of the other */

/* Whether the frame is in a `with` block of this lock: its own, or that of a generator which contextlib has
 * made the context manager of one of its blocks.
 *
 * `type`: LC_TYPE_LOCK, LC_TYPE_RLOCK or LC_TYPE_SEMLOCK. */
bool lc_is_in_with(lc_cpython_source *source, const lc_raw_frame *frame, uint64_t lock, int type);

/* The frame of the generator behind a slot of the value stack: contextlib's manager, or its __exit__,
 * bound. False: the slot is nothing of the kind. */
bool lc_manager_frame(lc_cpython_source *source, uint64_t slot, lc_raw_frame *out);

/* ---- futures.c: the thread that will set a concurrent.futures.Future --------------------------------- */

/* The Future whose `result` or `exception` a thread is in, and which has none yet; 0: it is in none. */
uint64_t lc_future_waited_for(lc_cpython_source *source, uint64_t thread_state);

/* Whether the Future's result comes from this thread: it runs the pool's work item of this very Future, or
 * the asyncio loop that its coroutine was given to by run_coroutine_threadsafe. In this process only. */
bool lc_future_comes_from(lc_cpython_source *source, uint64_t future, uint64_t thread_state);
