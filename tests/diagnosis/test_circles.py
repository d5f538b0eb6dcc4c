"""A stall in a circle of threads is called a deadlock, with what each of them waits for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loopcanary.model import LockProof, LockView, Stack, Stall, StallEvidence, StateWord, ThreadWait
from loopcanary.model.waiting import FUTURE, THREAD_END

from .cases import MS, frame, judged, samples, stack
from .cases import evidence as of

HERE = stack(frame("pay", line=12))
WORKER = Stack(frames=(frame("refund", line=20), frame("Thread.run", "/usr/lib/python3.11/threading.py", 9)))
NAMES = ((71, "worker"), (72, "mailer"))


def lock(kind: str = "lock") -> LockView:
    return LockView(kind=kind, proof=LockProof.WITH)


def wait(
    tid: int, holder: int, kind: str = "lock", at: Stack | None = WORKER, *, gives_up: bool = False
) -> ThreadWait:
    return ThreadWait(tid=tid, lock=lock(kind), holder_tid=holder, stack=at, has_timeout=gives_up)


def stalled(*circle: ThreadWait, inside: int = 11, kind: str = "lock") -> StallEvidence:
    """Twelve samples of a wait for 71, of which the last `inside` are in the circle."""
    taken = samples(*[HERE] * 12, syscall="futex", lock=lock(kind), holder_tid=71, holder_stack=WORKER)
    seen = tuple(replace(one, in_circle=index >= 12 - inside) for index, one in enumerate(taken))
    apart = tuple(replace(one, at_ns=20 * MS + index * 100 * MS) for index, one in enumerate(seen))
    return of(apart, lasted_ms=1_300, sample_interval_ns=100 * MS, circle=circle, thread_names=NAMES)


TWO = (wait(70, 71, at=HERE), wait(71, 70, "RLock"))


def is_called_so(stall: Stall) -> bool:
    assert ("deadlock" in stall.title) == any("deadlock" in one for one in stall.evidence)
    return "deadlock" in stall.title


def test_a_circle_is_said_with_its_threads_and_places():
    stall = judged(stalled(*TWO))

    assert stall.title == "deadlock of MainThread and worker in pay (app.py:12)"
    assert stall.evidence[:3] == (
        "A deadlock: MainThread and worker wait for each other.",
        "MainThread waits in pay (app.py:12) for the lock that worker holds.",
        "worker waits in refund (app.py:20) for the RLock that MainThread holds.",
    )
    assert stall.state_word is StateWord.DEADLOCKED
    assert "same order" in stall.advice


@pytest.mark.parametrize(
    ("kinds", "says"),
    [
        (("end of thread", "future"), "whose work it waits for"),
        (("end of thread", "end of thread"), "without the other"),
        (("end of thread", "lock"), "Release the lock"),
    ],
)
def test_advice_is_about_a_lock_where_there_is_one(kinds, says):
    names = {"end of thread": THREAD_END, "future": FUTURE}
    first, second = [names.get(kind, kind) for kind in kinds]
    stall = judged(stalled(wait(70, 71, first, HERE), wait(71, 70, second), kind=first))
    assert says in stall.advice


def test_a_thread_that_waits_for_a_circle_is_not_of_it():
    stall = judged(stalled(wait(70, 71, at=HERE), wait(71, 72), wait(72, 71)))

    assert stall.title.startswith("deadlock of worker and mailer")
    assert len([one for one in stall.evidence if " waits in " in one]) == 3
    assert stall.state_word is StateWord.DEADLOCKED


def test_a_holder_that_takes_its_lock_again():
    stall = judged(stalled(wait(70, 71, at=HERE), wait(71, 71)))

    assert stall.evidence[0] == "A deadlock: worker waits for itself."
    assert "RLock" in stall.advice


@pytest.mark.parametrize(
    ("kinds", "words"),
    [
        (("thread", "lock"), "join(timeout=...)"),
        (("lock", "Future"), "result(timeout=...)"),
        (("import lock of a", "import lock of b"), "Import these modules"),
        (("import lock of a", "lock"), "same order"),
    ],
    ids=["a join", "a result", "imports", "an import and a lock"],
)
def test_the_advice_is_about_what_they_wait_for(kinds, words):
    first, second = kinds
    stall = judged(stalled(wait(70, 71, first, HERE), wait(71, 70, second), kind=first))

    assert words in stall.advice
    assert is_called_so(stall)


def test_the_end_of_a_thread_has_words_of_its_own():
    stall = judged(stalled(wait(70, 71, "thread", HERE), wait(71, 70), kind="thread"))

    assert stall.evidence[1] == "MainThread waits in pay (app.py:12) for the end of worker."


def test_a_loop_that_waits_for_its_own_work_should_await():
    stall = judged(stalled(wait(70, 70, "Future", HERE)))

    assert stall.title == "deadlock of MainThread in pay (app.py:12)"
    assert stall.evidence[:2] == (
        "A deadlock: MainThread waits for itself.",
        "MainThread waits in pay (app.py:12) for a result that has to come from MainThread.",
    )
    assert "Await the coroutine" in stall.advice


def test_a_circle_that_a_timeout_ends_is_no_deadlock():
    stall = judged(stalled(wait(70, 71, at=HERE), wait(71, 70, "RLock", gives_up=True)))

    assert stall.title == "circular wait of MainThread and worker until a timeout in pay (app.py:12)"
    assert stall.evidence[:4] == (
        "MainThread and worker wait for each other until a timeout.",
        "MainThread waits in pay (app.py:12) for the lock that worker holds.",
        "worker waits in refund (app.py:20) for the RLock that MainThread holds.",
        "With a timeout: the wait of worker.",
    )
    assert stall.state_word is StateWord.HUNG
    assert not is_called_so(stall)


@pytest.mark.parametrize("kinds", [("lock", "lock"), ("thread", "lock"), ("Future", "lock")])
def test_what_has_a_timeout_is_not_advised_to_have_one(kinds):
    first, second = kinds
    stall = judged(stalled(wait(70, 71, first, HERE, gives_up=True), wait(71, 70, second), kind=first))

    assert stall.advice
    assert "timeout=" not in stall.advice


def test_a_timeout_before_a_deadlock_does_not_end_it():
    stall = judged(stalled(wait(70, 71, at=HERE, gives_up=True), wait(71, 72), wait(72, 71)))

    assert is_called_so(stall)
    assert stall.state_word is StateWord.DEADLOCKED


def test_a_result_of_its_own_that_a_timeout_ends():
    stall = judged(stalled(wait(70, 70, "Future", HERE, gives_up=True)))

    assert stall.evidence[0] == "MainThread waits for itself until a timeout."
    assert "Await the coroutine" in stall.advice


def test_what_was_a_circle_for_less_than_half_is_none():
    stall = judged(stalled(*TWO, inside=5))

    assert not is_called_so(stall)
    assert stall.state_word is StateWord.HUNG


@pytest.mark.parametrize(
    "circle",
    [
        (),
        (wait(71, 70),),
        (wait(70, 71, at=None), wait(72, 70)),
        (wait(70, 71, at=None), wait(71, 73)),
        (wait(70, 71, at=None), wait(71, 70), wait(70, 71)),
    ],
    ids=["none", "of others", "a gap", "an open end", "a thread twice"],
)
def test_a_circle_of_a_damaged_file_is_none(circle):
    assert not is_called_so(judged(stalled(*circle)))


def test_a_thread_without_stack_or_name_goes_by_its_number():
    stall = judged(stalled(wait(70, 73, at=None), wait(73, 70, at=None)))

    assert stall.evidence[1] == "MainThread waits for the lock that thread 73 holds."
