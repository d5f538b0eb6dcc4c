"""A fault of the thread itself, which ended the process: the cause, its title, and whose bug it is."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.diagnosis.cases import MS, PATHS, at, evidence, judged, kernel, samples, stack

from loopcanary.diagnosis.fingerprint import explain
from loopcanary.model import Cause, Fault, Grade, StallScope, ThreadReading

SOURCE = "def handler(image):\n    time.sleep(9)\n    image.resize(3)\n"
LAST = samples(stack(at("image.resize(3)", SOURCE)), running=True)
FAULT = Fault(signal="SIGBUS")


def crashed(fault=FAULT, taken=LAST, **more):
    return judged(evidence(taken, lasted_ms=2_000, fault=fault, **more), SOURCE)


@pytest.mark.parametrize(
    ("fault", "title", "says"),
    [
        (FAULT, "crashed: SIGBUS in image.resize(3), in handler (app.py:3)", "by what it executed"),
        (
            Fault(signal="SIGSEGV", is_stack_over=True),
            "crashed: stack overflow (SIGSEGV) in image.resize(3), in handler (app.py:3)",
            "a stack overflow",
        ),
    ],
)
def test_a_crash_is_the_cause_whatever_was_before(fault, title, says):
    stall = crashed(fault)
    assert (stall.cause, stall.confidence, stall.title) == (Cause.CRASH, 1.0, title)
    assert (stall.second_cause, stall.state_word) == (None, None)
    [sentence] = stall.evidence
    assert says in sentence
    assert ("recursion" if fault.is_stack_over else "C code crashed") in stall.advice


def test_what_came_before_is_kept_and_not_blamed():
    earlier = samples(*[stack(at("time.sleep(9)", SOURCE))] * 9, syscall="clock_nanosleep")
    last = replace(LAST[0], at_ns=earlier[-1].at_ns + 10 * MS)
    stall = judged(evidence((*earlier, last), fault=FAULT), SOURCE)
    assert (stall.title, stall.samples) == (
        "crashed: SIGBUS in image.resize(3), in handler (app.py:3)",
        10,
    )
    assert [len(stall.stacks), len(stall.evidence)] == [2, 1]
    assert crashed().grade is Grade.WEAK


def test_the_time_before_its_only_sample_is_told_of_no_machine():
    [last] = samples(stack(at("image.resize(3)", SOURCE)), state="R")
    late, before = (replace(last, at_ns=1_990 * MS),), ThreadReading(at_ns=0, kernel=kernel("S"))
    assert "neither the thread" in " ".join(crashed(None, late, before=before).evidence)
    assert len(crashed(taken=late, before=before).evidence) == 1


def test_without_a_frame_it_is_a_crash_all_the_same():
    stall = crashed(taken=samples(None, running=True), scope=StallScope.THREAD, names=None)
    assert (stall.cause, stall.title, stall.culprit) == (Cause.CRASH, "crashed: SIGBUS", None)
    assert explain(stall, PATHS) == ("cause=crash",)


def test_a_crash_is_no_bug_of_its_lines_stalls():
    bug = ("cause=crash", "culprit.file=app.py", "culprit.function=handler", "blocker=resize")
    assert explain(crashed(), PATHS) == explain(crashed(scope=StallScope.THREAD), PATHS) == bug
    assert explain(crashed(None), PATHS) != bug
