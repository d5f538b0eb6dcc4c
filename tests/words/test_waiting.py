"""Who held what a thread waited for, in words: a lock is held, a thread runs until it ends."""

from __future__ import annotations

import pytest
from tests.building.stalls import stall

from loopcanary.model import Cause, Holder, LockProof
from loopcanary.words.waiting import held_words, holder_label, holder_words, lock_words, second_cause_words


@pytest.mark.parametrize(
    ("lock", "said"),
    [
        (None, "held by thread audit for 70 %"),
        ("RLock", "held by thread audit for 70 %, holding the RLock (the lock itself says so)"),
        ("thread", "waited for thread audit for 70 %"),
    ],
    ids=["the GIL", "a lock", "the end of a thread"],
)
def test_a_thread_is_waited_for_and_a_lock_is_held(lock, said):
    holder = Holder(
        thread="audit", culprit=None, share=0.7, lock=lock, proof=None if lock is None else LockProof.OWNER
    )
    assert f"{holder_label(holder)} {holder_words(holder)}" == said


def test_a_module_is_locked_by_the_thread_that_imports_it():
    holder = Holder(thread="audit", culprit=None, share=1.0, lock="import lock of shop", proof=LockProof.WITH)
    assert (
        holder_words(holder) == "thread audit, holding the import lock of shop (it is importing the module)"
    )


@pytest.mark.parametrize(
    ("lock", "holder", "waits", "held"),
    [
        (None, "audit", "held by audit", "GIL held by audit"),
        ("RLock", "audit", "for RLock, held by audit", "RLock held by audit"),
        ("thread", "audit", "for the end of thread audit", "thread audit running"),
    ],
    ids=["the GIL", "a lock", "the end of a thread"],
)
def test_a_wait_names_lock_and_holder(lock, holder, waits, held):
    assert (lock_words(lock, holder), held_words(lock, holder)) == (waits, held)


@pytest.mark.parametrize(
    ("lock", "said"), [(None, ""), ("RLock", "for RLock"), ("thread", "for the end of a thread")]
)
def test_a_wait_whose_holder_is_not_known(lock, said):
    assert lock_words(lock, None) == said


@pytest.mark.parametrize(
    ("cause", "share", "second", "second_share", "said"),
    [
        (Cause.LOCK, 0.7, Cause.DISK_IO, 0.3, "30 % disk-io"),
        (Cause.NATIVE_CPU, 0.33, Cause.GC, 0.59, "33 % of it; 59 % gc, which this set off"),
        (Cause.BURST, 0.6, Cause.CPU, 0.9, "90 % cpu"),
    ],
    ids=["the larger leads", "garbage collection", "what a burst consists of"],
)
def test_a_smaller_share_that_leads_says_why(cause, share, second, second_share, said):
    one = stall(cause=cause, cause_share=share, second_cause=second, second_share=second_share)
    assert second_cause_words(one) == said
