"""Twisted's reactors: every block is seen once, at its line, with its cause, length and callback's name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.loops import blocked
from tests.loops.blocked import BlockedRun, assert_length, assert_shared, is_explained
from tests.program.test_detection import MARKS
from tests.program.watching import (
    PROGRAMS,
    Marks,
    Watched,
    admitted,
    is_by_the_host,
    not_by_the_host,
    unexplained,
)

twisted_base = pytest.importorskip("twisted.internet.base")
pytestmark = pytest.mark.native

PROGRAM = Path(__file__).parent / "reactor_blocks.py"
OWN_MARKS = Marks(PROGRAM.read_text())
SHARED = {*blocked.SHARED, "python_signal_handler"}
OWN = {
    "data_received": ("dataReceived", "data_received.<locals>.Slow.dataReceived"),
    "call_from_thread": ("slow_call", "call_from_thread.<locals>.slow_call"),
    "looping_call": ("slow_tick", "looping_call.<locals>.slow_tick"),
}
KINDS = (*sorted(SHARED), *OWN, "burst")


class ReactorRun(BlockedRun):
    """One run of the program on one reactor."""

    def __init__(self, folder: Path, reactor: str, kinds: tuple[str, ...]) -> None:
        watched = Watched(store=folder / "store", engine="native")
        truth_file = folder / "truth.json"
        watched.run(PROGRAM, PROGRAMS, reactor, truth_file, folder, *kinds, cwd=folder)
        super().__init__(truth_file, watched.report())


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> ReactorRun:
    return ReactorRun(tmp_path_factory.mktemp("epoll"), "epoll", KINDS)


def own_loop(run: ReactorRun) -> dict[str, Any]:
    (session,) = run.report["sessions"]
    return next(loop for loop in session["loops"] if loop["thread"] == "MainThread")


@pytest.mark.parametrize("kind", sorted(SHARED))
def test_a_delayed_call_that_blocks(run, kind):
    stall = assert_shared(run, kind)
    assert stall["loop"] == "twisted"
    assert stall["callback"]["name"] == "by_a_delayed_call.<locals>.call"


@pytest.mark.parametrize("kind", OWN)
def test_callbacks_of_other_ways_have_their_names(run, kind):
    function, name = OWN[kind]
    stall = assert_length(run, kind)
    assert (stall["culprit"]["function"], stall["culprit"]["line"]) == OWN_MARKS.find(
        f"culprit of {function}"
    )
    assert stall["cause"] in admitted(stall, ("sleep",))
    if kind != "call_from_thread" or hasattr(twisted_base, "_threadCallHandler"):
        assert stall["callback"]["name"] == name


def test_many_short_delayed_calls_are_a_burst(run):
    if run.truth["burst"]["longest_callback_ns"] >= 100_000_000:
        pytest.skip("the machine stopped a callback of half a millisecond")
    stall = run.stall_of("burst")
    assert stall["cause"] in admitted(stall, ("burst",))
    if is_by_the_host(stall):
        pytest.skip("others had the cores, and the evidence is of that")
    assert any("short" in sentence for sentence in stall["evidence"]), stall["evidence"]


def test_nothing_else_is_reported_but_what_the_host_did(run):
    assert [stall for stall in run.others() if not is_explained(stall)] == []


def test_the_loops_figures_are_there(run):
    loop = own_loop(run)
    assert loop["kind"] == "twisted"
    assert loop["turns"] > len(run.truth)
    assert loop["callbacks"] > 600  # the burst alone


@pytest.mark.parametrize(
    ("reactor", "kind"), [("poll", "twisted"), ("select", "twisted"), ("asyncio", "asyncio")]
)
def test_the_other_reactors(tmp_path, reactor, kind):
    kinds = ("sleep", "json_body", "held_lock", "data_received")
    run = ReactorRun(tmp_path, reactor, kinds)
    for name in kinds:
        stall = assert_length(run, name)
        marks, role = (OWN_MARKS, "dataReceived") if name == "data_received" else (MARKS, name)
        assert (stall["culprit"]["function"], stall["culprit"]["line"]) == marks.find(f"culprit of {role}")
        assert stall["loop"] == kind
        if reactor != "asyncio":
            assert stall["callback"]["name"] is not None
    assert own_loop(run)["kind"] == kind


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
    (stall,) = not_by_the_host(watched.report()["stalls"])
    assert (stall["culprit"]["function"], stall["loop"], stall["callback"]["name"]) == (
        "slow",
        "twisted",
        "slow",
    )
