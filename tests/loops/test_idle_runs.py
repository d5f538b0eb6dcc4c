"""Idle functions that ask for themselves again."""

from __future__ import annotations

import pytest

from loopcanary.probes.idle_runs import IdleRuns

MS = 1_000_000


class Trace:
    def __init__(self):
        self.spins = []

    def ran(self, name, begin_ns, end_ns): ...

    def spun(self, name, begin_ns, end_ns, runs, *, are_counted):
        self.spins.append((name, begin_ns // MS, end_ns // MS, runs, are_counted))


@pytest.fixture
def trace():
    return Trace()


def play(trace, *runs):
    """Runs of a millisecond each: how many, of which function, and the pause before each in ms."""
    idle, now_ns = IdleRuns(trace), 0
    for count, name, pause_ms in runs:
        for _ in range(count):
            begin_ns = now_ns + int(pause_ms * MS)
            now_ns = begin_ns + MS
            idle.ran(name, begin_ns, now_ns)


def test_one_that_runs_again_at_once_for_a_second_spins_and_grows(trace):
    play(trace, (3_500, "fill", 0), (1, "other", 0))
    assert trace.spins == [
        ("fill", 0, 1_001, 1_001, True),
        ("fill", 0, 2_002, 2_002, True),
        ("fill", 0, 3_003, 3_003, True),
        ("fill", 0, 3_500, 3_500, True),
    ]


@pytest.mark.parametrize(
    "runs",
    [
        [(900, "fill", 0), (1, "fill", 200), (900, "fill", 0)],
        [(3_000, "fill", 2)],
        [(10, "fill", 0), (1, "load", 0)] * 300,
    ],
    ids=["a pause", "a timer", "other work in between"],
)
def test_one_that_lets_the_loop_wait_or_others_run_does_not(trace, runs):
    play(trace, *runs)
    assert trace.spins == []
