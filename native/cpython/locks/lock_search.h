/* The two searches that locks.c puts together: for the lock that a thread waits for, and for its holder. */
#ifndef LOOPCANARY_LOCK_SEARCH_H
#define LOOPCANARY_LOCK_SEARCH_H

#include "cpython/locks/lock_frames.h"

typedef struct {
    lc_lock_kind kind;
    uint64_t object; /* the lock; of LC_LOCK_THREAD the thread's handle, 0 where it is a lock of 3.11 or 3.12 */
    uint64_t module; /* LC_LOCK_MODULE: str, the module's name */
} lc_found_lock;

/* lock_waited.c. The lock whose acquire the thread sleeps in; false: none that is known. */
bool lc_lock_waited_for(lc_cpython_source *source, uint64_t thread_state, uint64_t futex, lc_found_lock *found);

/* lock_waited.c. Up to 3.13: whether this futex lies in the lock (no handle of a thread). */
bool lc_sleeps_in_lock(const lc_cpython_source *source, uint64_t lock, uint64_t futex);

/* lock_holder.c. Whether the thread is in a `with` block of the lock, or loads the module. */
bool lc_lock_is_held_by(lc_cpython_source *source, const lc_found_lock *lock, uint64_t thread_state,
                        uint32_t *frame_budget);

/* The chain of a thread's frames into the walker's scratch, at most `limit` that are no shims; NULL if there is none
 * or it moved. Valid until the next walk or chain. */
const lc_chain *lc_lock_chain(lc_cpython_source *source, uint64_t thread_state, uint32_t limit);

/* Whether this frame runs the function of importlib's bootstrap with this qualified name. */
bool lc_is_bootstrap(const lc_cpython_source *source, const lc_frame_shape *shape, const char *qualname);

#endif
