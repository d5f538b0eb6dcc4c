"""Threads that wait for each other are seen from the one that stalls, while it does; others are not."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from loopcanary.flight import FlightFile
from loopcanary.model import StallEvidence

from .watching import GIVES_UP_S, PROGRAMS

CIRCLES = PROGRAMS / "circles.py"
MAIN = "MainThread"
SAMPLES = 12

TOLD = {
    "two_locks": [(MAIN, "lock", "other"), ("other", "lock", MAIN)],
    "two_rlocks_by_acquire": [(MAIN, "RLock", "other"), ("other", "RLock", MAIN)],
    "three_threads": [(MAIN, "lock", "second"), ("second", "lock", "third"), ("third", "lock", MAIN)],
    "join_in_the_lock": [(MAIN, "thread", "worker"), ("worker", "lock", MAIN)],
    "import_in_the_lock": [
        (MAIN, "import lock of wants_the_lock", "importer"),
        ("importer", "lock", MAIN),
    ],
    "result_of_a_pool": [(MAIN, "Future", "pool_0"), ("pool_0", "lock", MAIN)],
    "loop_that_has_not_begun": [(MAIN, "lock", "asker"), ("asker", "Future", MAIN)],
    "loop_that_has_begun": [(MAIN, "lock", "asker"), ("asker", "Future", MAIN)],
    "loop_of_its_own": [(MAIN, "Future", MAIN)],
    "behind_a_circle": [
        (MAIN, "lock", "first"),
        ("first", "lock", "second"),
        ("second", "lock", "first"),
    ],
    "context_managers": [(MAIN, "lock", "other"), ("other", "lock", MAIN)],
    "rlocks_of_context_managers": [(MAIN, "RLock", "other"), ("other", "RLock", MAIN)],
    "lock_with_a_timeout": [(MAIN, "lock", "other"), ("other", "lock", MAIN)],
    "other_lock_with_a_timeout": [(MAIN, "lock", "other"), ("other", "lock", MAIN)],
    "rlock_with_a_timeout": [(MAIN, "RLock", "other"), ("other", "RLock", MAIN)],
    "join_with_a_timeout": [(MAIN, "thread", "worker"), ("worker", "lock", MAIN)],
    "result_with_a_timeout": [(MAIN, "Future", "pool_0"), ("pool_0", "lock", MAIN)],
}
GIVES_UP = {
    "lock_with_a_timeout": [MAIN],
    "other_lock_with_a_timeout": ["other"],
    "rlock_with_a_timeout": [MAIN],
    "join_with_a_timeout": [MAIN],
    "result_with_a_timeout": [MAIN],
}
NONE = (
    "busy_lock",
    "chain_without_end",
    "opposite_order_in_time",
    "locks_by_acquire",
    "manager_that_let_go",
    "result_of_other_loop",
)

pytestmark = pytest.mark.native


@pytest.fixture
def stalled(watched, tmp_path):
    """stalled(kind, accepts) -> the first stall that `accepts`, of a program that waits."""
    programs = []

    def seen(kind: str, accepts: Callable[[StallEvidence], bool]) -> StallEvidence:
        canary = watched()
        program = canary.start(CIRCLES, kind, tmp_path)
        programs.append(program)
        assert program.stdout.readline() == "waits\n"
        (link,) = (canary.store / "flight").glob("*.flight")
        until = time.monotonic() + GIVES_UP_S
        with FlightFile.open(link.resolve()) as flight:
            while time.monotonic() < until and program.poll() is None:
                for _, evidence in flight.stalls():
                    if evidence.end_ns is None and accepts(evidence):
                        return evidence
                time.sleep(0.02)
        raise AssertionError(f"not seen of {kind}")

    yield seen
    for program in programs:
        program.kill()
        program.wait()
        program.stdout.close()


@pytest.mark.parametrize("kind", TOLD)
def test_a_circle_is_seen_with_each_of_its_threads(stalled, kind):
    evidence = stalled(kind, lambda seen: bool(seen.samples) and seen.samples[-1].in_circle)

    names = {**dict(evidence.thread_names), evidence.tid: MAIN}
    waits = [(names[wait.tid], wait.lock.kind, names[wait.holder_tid]) for wait in evidence.circle]
    assert waits == TOLD[kind]
    assert [names[wait.tid] for wait in evidence.circle if wait.has_timeout] == GIVES_UP.get(kind, [])
    assert all(wait.stack is not None and wait.stack.frames for wait in evidence.circle)
    assert not evidence.samples[0].in_circle


@pytest.mark.parametrize("kind", NONE)
def test_what_is_no_circle_or_cannot_be_known_is_none(stalled, kind):
    evidence = stalled(
        kind, lambda seen: sum(one.lock is not None for one in seen.samples[-SAMPLES:]) == SAMPLES
    )

    assert not any(sample.in_circle for sample in evidence.samples)
    assert evidence.circle == ()
