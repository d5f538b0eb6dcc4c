from __future__ import annotations

import signal
import subprocess
import sys
import threading
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.building.evidence import bare

from loopcanary.model import Frame, Sample, Stack
from loopcanary.pipeline import guards
from loopcanary.pipeline.guards import (
    DebuggerGuard,
    StormGuard,
    attached_debugger,
    debugger_on_stack,
)
from loopcanary.probes.polled import Polled, _Mark

_S = 1_000_000_000
_MINUTE = 60 * _S


def evidence(*files):
    frames = tuple(Frame(qualname="f", file=file) for file in files)
    return bare(samples=(Sample(at_ns=1, stack=None), Sample(at_ns=2, stack=Stack(frames=frames))))


@pytest.fixture(autouse=True)
def _no_tracer_of_the_test_run(monkeypatch):
    """The suite itself may run under a debugger or a tracer; each test sets its own signs."""
    monkeypatch.setattr(guards, "tracing_process", lambda: None)


def test_no_debugger_is_no_reason():
    assert attached_debugger() is None


def test_an_imported_pdb_and_pythonbreakpoint_are_no_reason(monkeypatch):
    import pdb  # noqa: F401, T100

    monkeypatch.setenv("PYTHONBREAKPOINT", "pdb.set_trace")
    assert attached_debugger() is None


def test_a_trace_function_of_this_thread_is_a_debugger():
    def trace(*_):
        return None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        assert attached_debugger() == f"a trace function of {__name__} is set"
    finally:
        sys.settrace(before)


def test_a_debugger_in_another_thread_is_seen_in_its_frames():
    tracing, looked = threading.Event(), threading.Event()

    def trace(*_):
        return trace

    def step():
        tracing.set()
        looked.wait()

    def program():
        sys.settrace(trace)
        step()

    thread = threading.Thread(target=program)
    thread.start()
    tracing.wait()
    try:
        # The innermost frame is Event.wait's or below; trace functions are handed to each new frame.
        assert attached_debugger() == f"a trace function of {__name__} is set"
    finally:
        looked.set()
        thread.join()


def test_coverage_is_no_debugger(monkeypatch):
    tracer = type("CTracer", (), {"__module__": "coverage.tracer"})()
    monkeypatch.setattr(threading, "gettrace", lambda: tracer)
    assert attached_debugger() is None


def test_a_mark_of_our_own_on_a_frame_is_no_debugger():
    sys._getframe().f_trace = _Mark(Polled(None), 0)
    assert attached_debugger() is None


def test_a_debugger_tool_of_sys_monitoring_is_a_reason(monkeypatch):
    monitoring = SimpleNamespace(DEBUGGER_ID=0, get_tool={0: "bdb"}.get)
    monkeypatch.setattr(sys, "monitoring", monitoring, raising=False)
    assert attached_debugger() == "sys.monitoring has the debugger tool 'bdb'"


@pytest.mark.parametrize(
    ("debugger", "reason"),
    [
        (None, None),
        (SimpleNamespace(is_attached=lambda: False), None),
        (SimpleNamespace(is_attached=lambda: True), "pydevd is attached"),
        (SimpleNamespace(), "pydevd is attached"),
    ],
)
def test_pydevd_counts_when_it_is_connected(monkeypatch, debugger, reason):
    monkeypatch.setitem(sys.modules, "pydevd", SimpleNamespace(get_global_debugger=lambda: debugger))
    assert attached_debugger() == reason


def test_a_sign_that_fails_is_no_debugger(monkeypatch):
    monkeypatch.setitem(sys.modules, "pydevd", SimpleNamespace())
    assert attached_debugger() is None


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ptrace as Linux has it")
def test_a_process_that_is_traced_says_so():
    program = (
        "import ctypes, os, sys\n"
        "from loopcanary.pipeline import guards\n"
        "assert guards.attached_debugger() is None\n"
        "PTRACE_TRACEME = 0\n"
        "if ctypes.CDLL(None).ptrace(PTRACE_TRACEME, 0, 0, 0) != 0: sys.exit(77)\n"
        "sys.exit(guards.attached_debugger() != f'process {os.getppid()} traces this one')\n"
    )
    child = subprocess.run([sys.executable, "-c", program], check=False)
    if child.returncode == 77:
        pytest.skip("ptrace is not allowed here")
    assert child.returncode in (0, -signal.SIGTRAP)


def test_a_stall_spent_in_pdb_is_known_after_pdb_has_gone():
    import bdb

    assert debugger_on_stack(evidence("/app/x.py", bdb.__file__)) == "the stall was spent in bdb"
    assert debugger_on_stack(evidence("/app/x.py", "/app/bdb.py")) is None
    waiting = "/venv/lib/python3.12/site-packages/debugpy/_vendored/pydevd/pydevd.py"
    assert debugger_on_stack(evidence("/app/x.py", waiting)) == "the stall was spent in pydevd"
    assert DebuggerGuard(lambda: None).reason(0, evidence(bdb.__file__)) == "the stall was spent in bdb"


def test_the_system_is_asked_at_most_twice_a_second():
    answers = iter(["gdb", None, "gdb again"])
    guard = DebuggerGuard(lambda: next(answers))
    assert [guard.reason(at) for at in (0, 1, _S // 2 - 1)] == ["gdb"] * 3
    assert guard.reason(_S // 2) is None
    assert guard.reason(_S) == "gdb again"


def admitted(guard, *times):
    return [guard.admits(at) for at in times]


def test_a_storm_passes_a_minutes_worth_and_then_one_at_a_time():
    guard = StormGuard(3, now_ns=0)
    assert admitted(guard, 0, 0, 0, 0, 0) == [True] * 3 + [False] * 2
    assert admitted(guard, 20 * _S - 1, 20 * _S, 20 * _S, 40 * _S) == [False, True, False, True]


def test_a_quiet_time_saves_up_one_minute_and_no_more():
    guard = StormGuard(2, now_ns=0)
    assert admitted(guard, *[1_000 * _MINUTE] * 3) == [True, True, False]


def test_a_clock_that_steps_back_gives_nothing_away():
    guard = StormGuard(1, now_ns=_MINUTE)
    assert admitted(guard, _MINUTE, 0, _MINUTE, 2 * _MINUTE) == [True, False, False, True]


@given(st.integers(1, 500), st.lists(st.integers(0, 5 * _S), max_size=200))
def test_never_more_than_the_burst_and_the_rate_and_never_less(per_minute, gaps):
    guard, now, passed = StormGuard(per_minute, now_ns=0), 0, 0
    for gap in gaps:
        now += gap
        passed += guard.admits(now)
    assert passed <= per_minute + now * per_minute // _MINUTE
    assert passed >= min(len(gaps), per_minute)
