"""Twisted's reactors at rest, and those that run already. (Their blocks: ../test_blocks.py.)"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.program.watching import PROGRAMS, Watched, not_by_the_host, unexplained

pytest.importorskip("twisted.internet")
pytestmark = pytest.mark.native

QUIET = """
import sys
from importlib import import_module
import_module(f"twisted.internet.{sys.argv[1]}reactor").install()
from twisted.internet import reactor, task
ticks = []
def tick():
    ticks.append(1)
    if len(ticks) == 300:
        reactor.callLater(0.5, reactor.stop)
        looping.stop()
looping = task.LoopingCall(tick)
looping.start(0.002)
reactor.run()
"""


@pytest.mark.parametrize("reactor", ["epoll", "select"])
def test_a_reactor_that_is_busy_and_then_idle_is_no_stall(tmp_path, reactor):
    watched = Watched(store=tmp_path / "store", engine="native")
    watched.run("-c", QUIET, reactor)
    assert unexplained(watched.report()["stalls"]) == []


LATE = """
import sys, time
import loopcanary
sys.path.insert(0, {programs!r})
from blocking import until_sampled
from twisted.internet import reactor

def install():
    loopcanary.install(store={store!r}, console=False)
    reactor.callLater(0.05, slow)

def slow():
    for seconds in until_sampled(0.25):
        time.sleep(seconds)
    reactor.callLater(0.05, over)

def over():
    reactor.callLater(0, reactor.stop)
    loopcanary.uninstall()
    left.append(type(reactor._poller).__module__)
    left.append(type(reactor)._doReadOrWrite.__code__.co_filename.rpartition("/")[2])

left = []
reactor.callLater(0, install)
reactor.run()
assert left == ["select", "epollreactor.py"] or left == ["select", "posixbase.py"], left
"""


def test_a_running_reactor_is_watched_and_restored(tmp_path: Path, run_python: Callable[..., Any]):
    watched = Watched(store=tmp_path / "store", engine="native")
    run_python(LATE.format(store=str(tmp_path / "store"), programs=str(PROGRAMS)))
    (stall,) = [stall for stall in not_by_the_host(watched.report()["stalls"]) if stall["samples"]]
    assert (stall["culprit"]["function"], stall["loop"], stall["callback"]["name"]) == (
        "slow",
        "twisted",
        "slow",
    )
