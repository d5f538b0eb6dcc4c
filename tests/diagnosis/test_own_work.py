"""What a thread of loopcanary's held up is said to be ours, and blamed on no line of the program."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.diagnosis.cases import (
    APP,
    MS,
    PATHS,
    SITE,
    STDLIB,
    evidence,
    frame,
    judged,
    samples,
    stack,
)

from loopcanary.diagnosis.fingerprint import explain
from loopcanary.model import Cause, Frame, GilState, LockProof, LockView, Sample, Stack, Stall
from loopcanary.words.waiting import second_cause_words

DRAIN = 90
NAMES = ((DRAIN, "loopcanary-drain"), (71, "worker-1"))
SQLITE = frame("<module>", f"{STDLIB}/sqlite3/dbapi2.py", 27)
STORE = frame("Store.put", f"{SITE}/loopcanary/store/store.py", 12)
RUN = frame("Thread.run", f"{STDLIB}/threading.py")


def waits(*inner: Frame, tid: int = DRAIN, count: int = 10, place: str = "handler", **more: Any) -> Any:
    held = {"gil": GilState.OTHER, "waits_for_gil": True} if "lock" not in more else {}
    by = {"holder_tid": tid, "holder_stack": Stack(frames=(*inner, STORE, RUN))}
    return samples(*[stack(frame(place, APP, 3))] * count, syscall="futex", **held, **by, **more)


def told(*taken: Sample, **more: Any) -> Stall:
    placed = tuple(replace(one, at_ns=(1 + number) * 10 * MS) for number, one in enumerate(taken))
    return judged(evidence(placed, thread_names=NAMES, **more))


@pytest.mark.parametrize("inner", [(), (SQLITE,)], ids=["in its own code", "in the standard library"])
def test_a_wait_for_our_thread_is_ours(inner):
    stall = told(*waits(*inner))
    assert (stall.cause, stall.culprit, stall.blamed, stall.blocker) == (Cause.GIL, None, None, None)
    assert (stall.holder.thread, stall.holder.culprit) == ("loopcanary-drain", None)
    assert stall.title == "waiting for loopcanary's own work"
    assert stall.evidence[0].startswith("10 of 10 samples waited for the GIL, which loopcanary's own thread")
    assert stall.advice.startswith("Your code is not at fault")


def test_waits_for_our_thread_are_one_bug():
    bugs = [told(*waits(SQLITE)), told(*waits(place="other")), told(*waits(place="a"), first_turn=True)]
    assert {stall.fingerprint for stall in bugs} == {bugs[0].fingerprint}
    assert explain(bugs[0], PATHS) == ("cause=gil", "holder=loopcanary")


def test_a_lock_of_ours_is_ours_too():
    stall = told(*waits(lock=LockView(kind="RLock", proof=LockProof.OWNER)))
    assert (stall.cause, stall.culprit, stall.holder.lock) == (Cause.LOCK, None, "RLock")
    assert "for a lock, which loopcanary's own thread held" in stall.evidence[0]


@pytest.mark.parametrize(
    "plugged",
    [frame("tell", APP, 40), frame("send", f"{SITE}/sentry_sdk/client.py", 9)],
    ids=["own", "package"],
)
def test_what_is_plugged_into_our_thread_is_blamed(plugged):
    stall = told(*waits(plugged))
    assert stall.title.startswith(f"GIL held by loopcanary-drain in {plugged.qualname}")
    assert stall.blamed.line == plugged.line


def test_a_cause_of_the_programs_goes_before_our_work():
    asleep = samples(*[stack(frame("handler", APP, 3))] * 12, syscall="clock_nanosleep")
    stall = told(*waits(count=18), *asleep)
    assert (stall.cause, stall.second_cause) == (Cause.SLEEP, Cause.GIL)
    assert second_cause_words(stall).endswith("gil, which is loopcanary's own work")
    assert stall.culprit.line == 3


def test_a_thread_of_the_programs_that_held_longer_is_named():
    crunch = frame("crunch", "/srv/app/jobs.py", 12)
    stall = told(*waits(crunch, tid=71, count=14), *waits(count=6))
    assert stall.title == "GIL held by worker-1 in crunch (jobs.py:12)"
    assert [holder.thread for holder in stall.holders] == ["worker-1"]
