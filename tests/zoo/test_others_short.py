"""Kinds of the zoo on trio and gevent, in whose waits, frames or names the loop has a part; and controls.

What a cause rests on is the same on every loop, and is tested on asyncio's (tests/program/test_detection.py).
`make zoo` plays all kinds on all loops.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.zoo.judging import assert_told_as_it_is
from zoo import catalogue

KINDS = {
    "trio": ("python_loop", "lock_held", "future_result", "gil_hog_in_c"),
    # gevent stands in for what blocks: locks, threads, queues and sockets wait in its hub, or do not.
    "gevent": ("regex", "lock_held", "thread_join", "queue_get", "socket_recv"),
}
PAIRS = [(loop, name) for loop, names in KINDS.items() for name in names]

pytestmark = pytest.mark.native


@pytest.mark.parametrize(("loop", "name"), PAIRS)
def test_the_stall_is_reported_as_it_is(loop, name):
    pytest.importorskip(loop)
    assert_told_as_it_is(catalogue.KINDS / f"{name}.py", loop)


@pytest.mark.parametrize("loop", KINDS)
def test_a_program_that_does_not_stall_has_no_report(loop):
    pytest.importorskip(loop)
    assert_told_as_it_is(Path(__file__).parent / f"ok_{loop}.py", loop)
