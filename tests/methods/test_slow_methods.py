"""Slow methods: stalls over their threshold whose calls were traced; what samples say of the same calls."""

from __future__ import annotations

import signal
from dataclasses import replace

import pytest
from tests.building.stalls import SESSION, STALL
from tests.methods.test_programs import GIVES_UP_S, Program, wait_until_sampled, with_calls

from loopcanary.model import Cause, StackFrame, WeightedStack
from loopcanary.model.calls import TracedCall, TracedCalls
from loopcanary.tracers.slow_methods import slow_methods_of
from loopcanary.words.traced import compared_words

MS = 1_000_000
SCRIPT = """
def inner():
    stall()

def work():
    inner()

loop(work)
"""


def slow_methods(report):
    return [one for one in report["issues"] if one["kind"] == "slow-method"]


@pytest.mark.native
@pytest.mark.parametrize("keeper", ["0", "1"], ids=["in-process", "keeper"])
def test_a_slow_stall_is_a_slow_method_too(tmp_path, keeper):
    program = Program(tmp_path)
    options = ("--methods", ".", "--slow-method", "120ms")
    with program.start(SCRIPT, *options, LOOPCANARY_KEEPER=keeper) as running:
        running.communicate(timeout=GIVES_UP_S)
    report = program.report()
    [stall] = with_calls(report["stalls"])
    [slow] = [one for one in slow_methods(report) if one["stall_ids"] == [stall["id"]]]
    assert [row["qualname"] for row in slow["rows"]] == [row["qualname"] for row in stall["calls"]["rows"]]
    assert all(row["calls"] == row["count"] for row in slow["rows"])
    assert slow["threshold_ms"] == 120
    assert slow["title"].startswith("stall took ")


@pytest.mark.native
def test_a_killed_program_s_slow_stall_has_its_own_limit(tmp_path):
    program = Program(tmp_path)
    script = SCRIPT.replace("stall()", "stall(); print('in it', flush=True); time.sleep(600)")
    with program.start(script, "--methods", ".", "--slow-method", "120ms") as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "in it\n"
        wait_until_sampled(program)
        running.send_signal(signal.SIGKILL)
        running.communicate(timeout=GIVES_UP_S)
    [slow] = slow_methods(program.report())
    assert slow["threshold_ms"] == 120
    assert [row["function"] for row in slow["rows"] if row["open"]][-1] == "inner"


def frame(name: str) -> StackFrame:
    return StackFrame(function=name, qualname=name, file="/srv/a.py", line=1, in_app=True)


def call(name: str, depth: int, total_ms: int, self_ms: int) -> TracedCall:
    return TracedCall(frame=frame(name), depth=depth, calls=1, total_ns=total_ms * MS, self_ns=self_ms * MS)


ROWS = (call("main", 0, 1000, 100), call("load", 1, 900, 900))
SLOW = replace(STALL, duration_ns=1000 * MS, calls=TracedCalls(rows=ROWS, lost=7, left_out=2, left_out_ns=5))


def test_a_stall_below_the_limit_is_none():
    assert slow_methods_of(SLOW, SESSION, 1001 * MS) == ()


def test_a_stall_without_traced_calls_is_none():
    assert slow_methods_of(replace(SLOW, calls=None), SESSION, MS) == ()
    assert slow_methods_of(replace(SLOW, calls=TracedCalls()), SESSION, MS) == ()


def test_it_has_what_the_stall_s_calls_have():
    (slow,) = slow_methods_of(SLOW, SESSION, 1000 * MS)
    assert (slow.id, slow.lost, slow.left_out, slow.left_out_ns) == (f"{SLOW.id}-slow-method", 7, 2, 5)
    assert slow.key_row is not None
    assert slow.key_row.frame.function == "load"


def test_cause_and_advice_are_the_stall_s_where_the_function_is():
    (other,) = slow_methods_of(SLOW, SESSION, MS)
    assert (other.cause, other.advice) == (Cause.UNKNOWN, None)
    assert SLOW.culprit is not None
    culprit = replace(SLOW.culprit, qualname="load", file="/srv/a.py")
    (same,) = slow_methods_of(replace(SLOW, culprit=culprit), SESSION, MS)
    assert (same.cause, same.advice) == (SLOW.cause, SLOW.advice)


def test_its_fingerprint_survives_builds():
    moved = tuple(replace(row, frame=replace(row.frame, line=77, file="/opt/v2/srv/a.py")) for row in ROWS)
    other = replace(SLOW, id="other-1", pid=9, calls=TracedCalls(rows=moved))
    (one,), (two,) = slow_methods_of(SLOW, SESSION, MS), slow_methods_of(other, SESSION, MS)
    assert one.fingerprint == two.fingerprint


def sampled(**weights_ms: int) -> tuple[WeightedStack, ...]:
    return tuple(
        WeightedStack(weight_ns=weight * MS, frames=(frame("c_call"), frame(name), frame("main")))
        for name, weight in weights_ms.items()
    )


CHECKED = replace(SLOW, calls=TracedCalls(rows=ROWS))


def test_samples_that_say_the_same_confirm_the_calls():
    stall = replace(CHECKED, stacks=sampled(load=880, main=120))
    assert compared_words(stall) == "samples and calls agree on 98% of the time"


def test_where_samples_say_otherwise_the_function_is_named():
    stall = replace(CHECKED, stacks=sampled(load=300, main=700))
    assert compared_words(stall) == (
        "samples and calls agree on 40% of the time: load has 90% by its calls, 30% by samples"
    )


@pytest.mark.parametrize(
    "stall",
    [replace(CHECKED, stacks=()), replace(CHECKED, calls=None), SLOW],
    ids=["no samples", "no calls", "calls were lost"],
)
def test_nothing_is_compared_with_nothing(stall):
    assert compared_words(stall) == ""
