"""What the tests of the portable engine share: a clock that only tests move, and lanes without threads."""

from __future__ import annotations

import json
import threading

import pytest
from tests.program.watching import Watched

from loopcanary.cli import main
from loopcanary.portable.lane import Lane, LaneIdentity

MS = 1_000_000


class VirtualClock:
    """Time as the test says."""

    def __init__(self):
        self.now_ns = 1_000_000 * MS

    def __call__(self):
        return self.now_ns

    def pass_ms(self, ms):
        self.now_ns += int(ms * MS)
        return self.now_ns


@pytest.fixture
def watched(tmp_path):
    """For programs of their own."""
    return Watched(store=tmp_path / "store", engine="portable")


@pytest.fixture
def report(watched, capsys):
    """What `loopcanary report` says of what ran in `watched`, asked in this process, which is quicker."""

    def read():
        capsys.readouterr()  # pygame prints a greeting when it is imported
        assert main(["report", "--store", str(watched.store), "--format", "json"]) == 0
        return json.loads(capsys.readouterr().out)

    return read


@pytest.fixture
def clock():
    return VirtualClock()


@pytest.fixture
def rings():
    """One entry for each time that the watchdog was rung for an ended stall."""
    return []


@pytest.fixture
def lane(clock, rings):
    return _lane(clock, rings)


@pytest.fixture
def ticked_lane(clock, rings):
    return _lane(clock, rings, by_ticks=True)


def name_of(ended):
    """Of the work that has ended; None: it has none."""
    return None if ended.work is None else ended.work.name


def _lane(clock, rings, *, by_ticks=False):
    identity = LaneIdentity(
        number=1,
        tid=threading.get_native_id(),
        ident=threading.get_ident(),
        loop_kind="asyncio",
        thread_name="MainThread",
        by_ticks=by_ticks,
    )
    return Lane(
        identity,
        threshold_ns=100 * MS,
        opened_ns=clock(),
        on_ended=lambda: rings.append(1),
    )
