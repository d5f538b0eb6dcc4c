/* Locks that threads wait for, and the threads that hold them. */
#pragma once

#include "cpython/source/cpython_source.h"

/* lc_frame_source.lock. The watchdog's thread; no GIL, lock, allocation. Bounded: LC_LOCK_FRAMES_MAX frames
 * of other threads are looked at in all.
 *
 * How the lock is found: the innermost Python frame of a thread that sleeps in an acquire has the lock, or a
 * method bound to it, among its locals and values. Up to 3.13 the kernel's word for it is exact: the address
 * that the thread sleeps on lies in the lock. From 3.14 on it sleeps on its own stack; there it is the lock
 * that is being called, by the frame's stack pointer, and that says that a thread is parked at it.
 *
 * Who holds it: an RLock names its owner; a thread holds a lock in whose `with` block it is
 * (with_blocks.c). An RLock between processes (semlock.c) names its owner, too. A Lock of theirs names the
 * thread of this process that acquired it last: that thread holds it if it is in the lock's `with` block
 * as well. */
void lc_lock(lc_cpython_source *source, const lc_lock_question *question, lc_lock_view *out);

/* lc_frame_source.waits_for: whether a thread waits for the lock at this address, as lc_lock answered it
 * of another thread that still waits for it. Up to 3.13 one comparison of addresses; later the thread's
 * innermost frame is read. */
bool lc_waits_for_lock(lc_cpython_source *source, uint64_t thread_state, uint64_t futex, uint64_t object);

#define LC_LOCK_THREADS_MAX 256u
#define LC_LOCK_FRAMES_MAX 2048u

/* Learns how locks look in this interpreter, from locks made for the purpose; without that, `lock` answers
 * that it does not know. Thread: any; GIL held. No exception is left set. */
void lc_locks_learn(lc_cpython_source *source);
