from __future__ import annotations

import os
import pty
from collections.abc import Iterator
from dataclasses import replace

import pytest
from tests.building.issues import IDLE_LAG, ISSUES, JANK
from tests.building.stalls import SESSION, stall

from loopcanary.reporters.bell import Bell
from loopcanary.reporters.terminal import Terminal

S = 1_000_000_000
HANG = stall(duration_ns=2 * S)


class Clock:
    now_ns = 0

    def __call__(self) -> int:
        return self.now_ns


@pytest.fixture
def terminal() -> Iterator[tuple[int, Terminal]]:
    """The other end of a terminal, and the terminal."""
    ours, theirs = pty.openpty()
    os.set_blocking(ours, False)
    yield ours, Terminal(theirs)
    os.close(ours)
    os.close(theirs)


def heard(end: int) -> bytes:
    try:
        return os.read(end, 4_096)
    except BlockingIOError:
        return b""


def bell(terminal: Terminal, clock: Clock) -> Bell:
    return Bell(from_ns=S, every_ns=60 * S, terminal=terminal, monotonic_ns=clock)


def test_a_terminal_rings_once_a_minute_for_a_bug(terminal):
    end, screen = terminal
    clock = Clock()
    one = bell(screen, clock)
    rings = []
    for at_s in (0, 10, 59, 60, 119, 120):
        clock.now_ns = at_s * S
        one.report(HANG, 0)
        rings.append(heard(end))
    assert rings == [b"\a", b"", b"", b"\a", b"", b"\a"]


def test_many_bugs_at_once_ring_once(terminal):
    end, screen = terminal
    one = bell(screen, Clock())
    for number in range(20):
        one.report(replace(HANG, fingerprint=str(number)), 0)
    assert heard(end) == b"\a"


def test_what_is_short_does_not_ring(terminal):
    end, screen = terminal
    one = bell(screen, Clock())
    one.report(stall(duration_ns=S - 1), 0)
    one.report(replace(IDLE_LAG, duration_ns=S - 1), 0)
    one.report(JANK, 0)  # of 6 s, in which no frame took one
    one.close(SESSION, [HANG])
    assert heard(end) == b""


@pytest.mark.parametrize("issue", ISSUES, ids=lambda issue: issue.kind.value)
def test_other_issues_ring_where_their_kind_is_asked_for(terminal, issue):
    end, screen = terminal
    every = {"every_ns": 60 * S, "terminal": screen, "monotonic_ns": Clock()}
    Bell(from_ns=issue.felt_ns, kinds={one.kind for one in ISSUES} - {issue.kind}, **every).report(issue, 0)
    assert heard(end) == b""
    Bell(from_ns=issue.felt_ns, kinds={issue.kind}, **every).report(issue, 0)
    assert heard(end) == b"\a"


def test_what_is_made_of_a_stall_that_rang_does_not_ring_again(terminal):
    end, screen = terminal
    clock = Clock()
    one = bell(screen, clock)
    one.report(HANG, 0)
    assert heard(end) == b"\a"
    clock.now_ns = 5 * S
    one.report(replace(IDLE_LAG, stalls=(HANG.id,)), 0)
    assert heard(end) == b""
    one.report(IDLE_LAG, 0)
    assert heard(end) == b"\a"


def test_a_pipe_gets_nothing():
    ours, theirs = os.pipe()
    os.set_blocking(ours, False)
    bell(Terminal(theirs), Clock()).report(HANG, 0)
    assert heard(ours) == b""
    os.close(theirs)
    os.close(ours)


def test_a_terminal_that_is_gone_is_no_error():
    ours, theirs = pty.openpty()
    one = bell(Terminal(theirs), Clock())
    os.close(ours)
    one.report(HANG, 0)
    os.close(theirs)
    one.report(replace(HANG, fingerprint="2"), 0)
