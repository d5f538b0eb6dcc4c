"""Locks of multiprocessing have holders, and are in circles, where this process surely has them."""

from __future__ import annotations

import pytest

from loopcanary.model import LockProof, StallEvidence

from .circled import MAIN, assert_circle, assert_no_circle, is_in_circle, stalled
from .watching import PROGRAMS

__all__ = ["stalled"]

SHARED_LOCKS = PROGRAMS / "shared_locks.py"
LOCK, RLOCK = "multiprocessing.Lock", "multiprocessing.RLock"
SEMAPHORE = "multiprocessing.Semaphore"
SAMPLES = 12

CIRCLES = {
    "two_locks": [(MAIN, LOCK, "other"), ("other", LOCK, MAIN)],
    "a_lock_and_one_of_threads": [(MAIN, LOCK, "other"), ("other", "lock", MAIN)],
    "two_conditions": [(MAIN, LOCK, "other"), ("other", RLOCK, MAIN)],
    "context_managers": [(MAIN, LOCK, "other"), ("other", LOCK, MAIN)],
    "two_rlocks_by_acquire": [(MAIN, RLOCK, "other"), ("other", RLOCK, MAIN)],
    "join_in_the_lock": [(MAIN, "thread", "worker"), ("worker", LOCK, MAIN)],
    "lock_with_a_timeout": [(MAIN, LOCK, "other"), ("other", LOCK, MAIN)],
}
NONE = {
    "busy_lock": (LOCK, LockProof.WITH, "other"),
    "lock_that_a_child_may_release": (LOCK, LockProof.WITH, "other"),
    "lock_that_a_child_took_over": (LOCK, LockProof.NONE, None),
    "own_signal": (LOCK, LockProof.NONE, None),
    "lock_of_a_child": (LOCK, LockProof.NONE, None),
    "rlock_of_a_child": (RLOCK, LockProof.NONE, None),
    "semaphore": (SEMAPHORE, LockProof.NONE, None),
    "condition_that_let_go": (LOCK, LockProof.WITH, "other"),
    "empty_queue": (LOCK, LockProof.WITH, "other"),
    "full_queue": (LOCK, LockProof.NONE, None),
}

pytestmark = pytest.mark.native


@pytest.mark.parametrize("kind", CIRCLES)
def test_a_circle_over_locks_of_multiprocessing_is_seen(stalled, kind):
    gives_up = [MAIN] if kind == "lock_with_a_timeout" else []
    assert_circle(stalled(SHARED_LOCKS, kind, is_in_circle), CIRCLES[kind], gives_up)


@pytest.mark.parametrize("kind", NONE)
def test_what_another_process_may_release_is_no_circle(stalled, kind):
    """And the holder is named where this process surely has one."""

    def waits_long(seen: StallEvidence) -> bool:
        last = seen.samples[-SAMPLES:]
        ran = {one.kernel.on_cpu_ns for one in last if one.kernel is not None}
        return len(last) == SAMPLES and len(ran) == 1 and all(one.lock is not None for one in last)

    evidence = stalled(SHARED_LOCKS, kind, waits_long)
    names = dict(evidence.thread_names)
    last = evidence.samples[-1]
    assert (last.lock.kind, last.lock.proof) == NONE[kind][:2]
    assert names.get(last.holder_tid or 0) == NONE[kind][2]
    assert_no_circle(evidence)


def test_other_threads_that_wait_for_the_lock_are_seen(stalled):
    def is_waited_for(seen: StallEvidence) -> bool:
        is_of_lock = bool(seen.samples) and seen.samples[-1].lock is not None
        return is_of_lock and seen.waiter_count == 2

    evidence = stalled(SHARED_LOCKS, "lock_that_others_wait_for", is_waited_for)
    holder = evidence.samples[-1].holder_tid
    assert len({*evidence.waiters, evidence.tid, holder}) == 4
    assert evidence.circle == ()
