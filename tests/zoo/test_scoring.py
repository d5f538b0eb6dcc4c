from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from zoo.catalogue import Kind, Place
from zoo.observation import Frame, Report
from zoo.scoring import Score, score
from zoo.truth import Truth

MS = 1_000_000
WALL_NS = 1_700_000_000 * 10**9
BEGAN_NS = 50 * 10**9
TRUTH = Truth(began_ns=BEGAN_NS, ended_ns=BEGAN_NS + 300 * MS, thread=1, plays_ns=0, played_ns=0)
ENDLESS = replace(TRUTH, ended_ns=0)
KIND = Kind(
    name="wait",
    path=Path("/zoo/wait.py"),
    summary="Waits.",
    causes=("lock",),
    control=False,
    about=False,
    killed=False,
    loops=("asyncio",),
    watchers=(),
    culprits=(Place("wait", frozenset({7, 8})),),
    holders=(),
    threads=(),
)
HELD = replace(KIND, holders=(Place("hold", frozenset({3})),), threads=("holder",))
HERE = Frame("/elsewhere/wait.py", "wait", 7)
HOLD = Frame("/zoo/wait.py", "hold", 3)


def scored(*reports, kind=KIND, truth=TRUTH, disturbed=False):
    return score(kind, truth, WALL_NS, reports, disturbed=disturbed)


def test_no_report_is_a_miss():
    missed = Score(detected=False, function=False, line=False, cause=False, best=False)
    assert scored() == missed


def test_all_that_is_right_is_credited():
    report = Report(frames=(HERE,), causes=("lock",), duration_ms=301, began_ns=WALL_NS)
    assert scored(report) == Score(
        detected=True,
        function=True,
        line=True,
        cause=True,
        best=True,
        duration_error_ms=1,
        duration_right=True,
    )


@pytest.mark.parametrize(
    ("frame", "function", "line"),
    [
        (Frame("/zoo/wait.py", "wait", 8), True, True),
        (Frame("/zoo/wait.py", "Class.wait", 8), True, True),
        (Frame("/zoo/wait.py", "wait", 9), True, False),
        (Frame("", "wait"), True, False),
        (Frame("/zoo/other.py", "wait", 7), False, False),
        (Frame("/zoo/wait.py", "handler", 7), False, False),
    ],
)
def test_function_and_line_are_those_of_the_program(frame, function, line):
    found = scored(Report(frames=(frame,)))
    assert (found.detected, found.function, found.line) == (True, function, line)


def test_a_line_anywhere_in_a_dump_is_credited():
    frames = (Frame("/lib/threading.py", "run", 1), HERE, Frame("/lib/runpy.py", "main", 2))
    assert scored(Report(frames=frames)).line


@pytest.mark.parametrize(
    ("began_ms", "duration_ms", "told_ms", "detected"),
    [
        (0, 300, None, True),
        (100, 250, None, True),
        (-800, 300, None, False),
        (280, 300, None, False),
        (None, None, 150, True),
        (None, None, 500, True),
        (None, None, -50, False),
        (None, None, 900, False),
        (None, None, None, True),
    ],
)
def test_a_report_is_of_the_stall_by_its_time_if_it_has_one(began_ms, duration_ms, told_ms, detected):
    report = Report(
        frames=(HERE,),
        began_ns=None if began_ms is None else WALL_NS + began_ms * MS,
        duration_ms=duration_ms,
        told_ns=None if told_ms is None else BEGAN_NS + told_ms * MS,
    )
    assert scored(report).detected is detected


@pytest.mark.parametrize(
    ("told", "true", "right"), [(302, 300, True), (303, 300, True), (304, 300, False), (1009, 1000, True)]
)
def test_a_duration_may_be_off_by_2_ms_or_1_percent(told, true, right):
    truth = replace(TRUTH, ended_ns=BEGAN_NS + true * MS)
    assert scored(Report(duration_ms=told), truth=truth).duration_right is right


def test_a_duration_that_is_known_about_is_not_judged():
    assert scored(Report(duration_ms=200), kind=replace(KIND, about=True)).duration_right is None


def test_a_stall_below_the_threshold_is_none_and_is_not_judged():
    short = replace(TRUTH, ended_ns=BEGAN_NS + 99 * MS)
    assert scored(truth=short) == Score()
    assert scored(truth=replace(TRUTH, ended_ns=BEGAN_NS + 100 * MS)).detected is False


def test_a_report_without_duration_is_not_judged_by_it():
    assert scored(Report(frames=(HERE,))).duration_right is None


def test_a_guilty_thread_counts_where_it_is_named_as_such():
    assert scored(Report(frames=(HERE,), holder=HOLD, thread="holder"), kind=HELD).holder is True
    assert scored(Report(frames=(HERE, HOLD)), kind=HELD).holder is False
    assert scored(Report(frames=(HERE,), holder=HERE, thread="holder"), kind=HELD).holder is False
    assert scored(Report(frames=(HERE,), holder=HOLD, thread="thread 712"), kind=HELD).holder is False


def test_a_dump_that_shows_the_guilty_thread_shows_a_culprit():
    assert scored(Report(frames=(HOLD,)), kind=HELD).line
    # Who tells the two apart has to tell the waiting line as well.
    assert scored(Report(frames=(), holder=HOLD), kind=HELD).line is False


def test_another_threads_guilt_asks_for_no_line_here():
    nobody = replace(HELD, culprits=())
    found = scored(Report(holder=HOLD, thread="holder"), kind=nobody)
    assert (found.function, found.line, found.holder) == (None, None, True)


def test_a_killed_program_is_judged_by_what_is_left():
    killed = replace(KIND, killed=True)
    found = scored(Report(frames=(HERE,), duration_ms=1900, began_ns=WALL_NS), kind=killed, truth=ENDLESS)
    assert (found.survived, found.duration_right) == (True, None)
    assert scored(kind=killed, truth=ENDLESS).survived is False


def test_a_report_in_a_control_is_a_false_alarm():
    control = replace(KIND, causes=(), culprits=(), control=True)
    assert scored(kind=control) == Score(false_alarms=0)
    assert scored(Report(), Report(excused=True), kind=control) == Score(false_alarms=1)
    assert scored(Report(), kind=control, disturbed=True) == Score()


def test_a_disturbed_run_is_judged_in_part():
    found = scored(Report(frames=(HERE,), causes=("host",), duration_ms=900), kind=HELD, disturbed=True)
    assert found == Score(detected=True, function=True, line=True)


def test_the_first_word_is_the_best_one():
    either = replace(KIND, causes=("sleep", "lock"))
    found = scored(Report(frames=(HERE,), causes=("lock",)), kind=either)
    assert (found.cause, found.best) == (True, False)


@pytest.mark.parametrize(("queued", "right"), [(None, None), (0.3, False), (0.5, False), (0.6, True)])
def test_host_is_right_where_the_run_queue_had_most(queued, right):
    report = Report(frames=(HERE,), causes=("host",), duration_ms=900, queued=queued)
    found = scored(report, kind=HELD, disturbed=True)
    assert (found.cause, found.best) == (right, right)
    assert found.holder is (False if right is False else None)
    assert scored(report, kind=HELD).cause is bool(right)


def test_who_tells_the_run_queue_is_judged_on_a_loaded_machine():
    report = Report(frames=(HERE,), causes=("lock",), holder=HOLD, thread="holder", queued=0.4)
    found = scored(report, kind=HELD, disturbed=True)
    assert (found.cause, found.holder, found.bug) == (True, True, None)


def test_a_stall_is_counted_under_its_bug():
    report = Report(frames=(HERE,), bug="3:ab", queued=0.6)
    assert scored(report).bug == "3:ab"
    assert scored(report, disturbed=True).bug == "3:ab"
    assert scored(replace(report, causes=("host",)), disturbed=True).bug is None  # the machine's


PROGRAM = """\
def wait():
    pause(1)


async def handler():
    wait()
"""


@pytest.mark.parametrize(
    ("advice", "words", "right"),
    [
        (None, (), None),
        ("Wait for less.", (), True),
        ("Wait for less.", ("to_thread",), False),
        ("In `handler` (wait.py:6) use `await asyncio.to_thread(wait)`", ("aiofiles", "to_thread"), True),
        ("In `handler` (wait.py:6) use `await asyncio.to_thread(lock)`", (), False),
        ("In `handler` (wait.py:9) use `await asyncio.to_thread(wait)`", (), False),
        ("Use `await asyncio.sleep(1)`.", (), False),
        ("Make `wait` an `async def` and use `await asyncio.sleep(1)`.", (), True),
        ("Make `handler` an `async def` and use `await asyncio.sleep(1)`.", (), False),
    ],
)
def test_advice_is_applicable_where_its_code_compiles(tmp_path, advice, words, right):
    path = tmp_path / "wait.py"
    path.write_text(PROGRAM)
    kind = replace(KIND, path=path, advice=words)
    assert scored(Report(frames=(Frame("wait.py", "wait", 2),), advice=advice), kind=kind).advice is right
