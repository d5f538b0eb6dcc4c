"""Issues that third parties' tracers tell: taken, checked, cut to size, completed; and the tracers' lives."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from tests.building.anything import any_of
from tests.building.issues import JANK
from tests.building.stalls import BEGAN, MS, SESSION, STALL, S, frame

from loopcanary.engine import Boundary
from loopcanary.model import (
    CallRow,
    Cause,
    Clock,
    IssueKind,
    Phase,
    PhaseKind,
    SlowMethod,
    StartKind,
    Startup,
)
from loopcanary.model.calls import heaviest, levels
from loopcanary.model.issues.facts import ReportedFacts
from loopcanary.model.issues.slow_method import ROWS_MAX, key_of
from loopcanary.model.issues.startup import PHASES_MAX
from loopcanary.protocols.kinds import issue_from_wire, kind_of
from loopcanary.tracers.bounded import LIST_MAX, TEXT_MAX
from loopcanary.tracers.desk import WAITING_MAX, Told, TracerDesk
from loopcanary.tracers.frames import FrameListeners
from loopcanary.tracers.plugged import PluggedTracer, PluggedTracers
from loopcanary.tracers.reported import completed
from loopcanary.tracers.tracing import SETTLE_NS, Tracing
from loopcanary.wire import to_wire

START = Startup(began_wall_ns=BEGAN, duration_ns=5 * S, threshold_ns=4 * S)
SLOW = SlowMethod(began_wall_ns=BEGAN, duration_ns=S, threshold_ns=700 * MS)
NOW = 1_000 * S


def told(issue: Any) -> Told:
    return Told(issue=issue, thread="worker", scene="checkout", told_ns=NOW)


def whole(issue: Any, *stalls: Any) -> Any:
    return completed(told(issue), SESSION, 7, stalls)


def call(name: str, depth: int, total_ms: int, **more: Any) -> CallRow:
    place = frame(name, f"/srv/shop/{name}.py", 3, in_app=True)
    return CallRow(frame=place, depth=depth, total_ns=total_ms * MS, self_ns=0, **more)


# ---- the key of a slow method (Matrix: stackKey) ---------------------------------------------


@pytest.mark.parametrize(
    ("rows", "key"),
    [
        ([], None),
        ([("all", 0, 1_000)], 0),
        ([("all", 0, 1_000), ("deep", 1, 600), ("deeper", 2, 450)], 2),
        ([("all", 0, 1_000), ("deep", 1, 600), ("deeper", 2, 300)], 1),
        ([("all", 0, 1_000), ("short", 1, 299)], 0),
        ([("one", 1, 400), ("other", 1, 400)], 0),
        ([("all", 0, 200), ("most", 1, 150)], 0),
    ],
    ids=[
        "no rows, no key",
        "one row is the key",
        "depth counts: 3 x 450 is more than 2 x 600",
        "and time: 3 x 300 is less than 2 x 600",
        "less than 30 % is no candidate",
        "of equal ones the first",
        "where none has 30 %, the first",
    ],
)
def test_the_key_is_the_row_with_the_largest_depth_times_cost(rows, key):
    assert key_of(tuple(call(*row) for row in rows), S) == key


def test_the_loops_row_is_the_key_as_a_last_resort():
    loop = call("_run", 0, 1_000, is_dispatch=True)
    assert key_of((loop, call("work", 1, 310)), S) == 1
    assert key_of((loop, call("work", 1, 200)), S) == 0


def test_the_fingerprint_has_no_line_of_the_key():
    rows = (call("handle", 0, 1_000), call("load", 1, 900))
    one = whole(replace(SLOW, rows=rows))
    moved = replace(rows[1].frame, line=99, file="/home/user/elsewhere/shop/load.py")
    assert whole(replace(SLOW, rows=(rows[0], replace(rows[1], frame=moved)))).fingerprint == one.fingerprint
    other = replace(rows[1].frame, qualname="store")
    assert whole(replace(SLOW, rows=(rows[0], replace(rows[1], frame=other)))).fingerprint != one.fingerprint
    assert one.fingerprint.startswith("slow-method:")


# ---- trees cut to size -----------------------------------------------------------------------


def test_depths_may_be_anything():
    assert levels([3, 5, 5, 1, 9, 0, -4, 2]) == [0, 1, 1, 0, 1, 0, 0, 1]


def test_the_heaviest_rows_are_kept_with_their_parents():
    rows = [(0, 10), (1, 2), (2, 50), (1, 8), (0, 1)]
    kept = heaviest(rows, 3, depth=lambda row: row[0], weight=lambda row: row[1])
    assert kept == [0, 1, 2]
    assert heaviest(rows, 2, depth=lambda row: row[0], weight=lambda row: row[1]) == [0, 3]


def test_what_is_left_out_is_said():
    rows = (call("all", 0, 1_000), *(call(f"f{n}", 1, n) for n in range(ROWS_MAX + 40)))
    slow = whole(
        replace(SLOW, rows=tuple(replace(row, self_ns=MS) for row in rows), left_out=2, left_out_ns=5)
    )
    assert isinstance(slow, SlowMethod)
    assert (len(slow.rows), slow.left_out, slow.left_out_ns) == (ROWS_MAX, 43, 41 * MS + 5)
    assert [slow.rows[0].frame.function, slow.rows[1].frame.function] == ["all", "f41"]
    phases = tuple(
        Phase(kind=PhaseKind.IMPORT, name=f"m{n}", offset_ns=n, duration_ns=n, self_ns=n)
        for n in range(PHASES_MAX + 9)
    )
    start = whole(replace(START, phases=phases))
    assert isinstance(start, Startup)
    assert (len(start.phases), start.left_out, start.phases[0].name) == (PHASES_MAX, 9, "m9")


def test_rows_beyond_the_limit_count_as_left_out():
    many = 3 * LIST_MAX
    slow = whole(replace(SLOW, rows=(call("f", 0, 1),) * many, left_out=2))
    assert isinstance(slow, SlowMethod)
    assert (len(slow.rows), slow.left_out) == (ROWS_MAX, many - ROWS_MAX + 2)
    start = whole(replace(START, phases=[Phase(**TIMES)] * many))  # type: ignore[arg-type]
    assert isinstance(start, Startup)
    assert (len(start.phases), start.left_out) == (PHASES_MAX, many - PHASES_MAX)


def test_a_key_too_far_in_to_be_kept_gives_way_to_one_that_is():
    """A recursive function: each call has all of the time, the innermost is the key."""
    outer = call("load", 0, 1_000)
    rows = (outer, *(call("walk", depth, 1_000) for depth in range(1, 2 * ROWS_MAX)))
    slow = whole(replace(SLOW, rows=rows))
    assert isinstance(slow, SlowMethod)
    assert (len(slow.rows), slow.key) == (ROWS_MAX, ROWS_MAX - 1)
    shallow = whole(replace(SLOW, rows=rows[:5]))
    assert slow.fingerprint == shallow.fingerprint
    assert slow.culprit is not None
    assert slow.culprit.function == "walk"
    assert slow.title == shallow.title


def test_a_list_without_end_is_looked_at_no_further():
    phases, stalls = itertools.repeat(Phase(**TIMES)), itertools.repeat("s1-1")
    start = whole(replace(START, phases=phases, stalls=stalls))  # type: ignore[arg-type]
    assert isinstance(start, Startup)
    assert (len(start.phases), len(start.stalls)) == (PHASES_MAX, 20)


def test_nested_rows_are_cut_from_the_innermost_on():
    """A recursive function: each row that does not fit has all others above it."""
    rows = range(LIST_MAX)
    assert heaviest(rows, 3, depth=lambda row: row, weight=lambda row: -row) == [0, 1, 2]


def test_stacks_are_cut():
    deep = replace(STALL.stacks[0], frames=STALL.stacks[0].frames * 300)
    stacks = whole(replace(SLOW, stacks=(deep,) * 30)).stacks
    assert (len(stacks), len(stacks[0].frames), stacks[0].truncated) == (8, 200, True)


def test_names_are_cut():
    start = whole(replace(START, title="t" * 9_999, phases=(Phase(name="n" * 9_999, **TIMES),)))
    assert isinstance(start, Startup)
    assert (len(start.title), len(start.phases[0].name)) == (TEXT_MAX, TEXT_MAX)


TIMES = {"offset_ns": 0, "duration_ns": 1, "self_ns": 1}


# ---- completed -------------------------------------------------------------------------------


def test_what_the_tracer_leaves_empty_is_filled_in():
    start = whole(replace(START, start=StartKind.COLD, id="mine", session="theirs", pid=-1))
    assert isinstance(start, Startup)
    assert (start.id, start.session, start.pid) == ("s1-startup-7", SESSION.id, SESSION.pid)
    assert (start.thread, start.scene, start.program) == ("worker", "checkout", SESSION.name)
    assert start.title == "cold start took 5.00 s"
    assert start.is_slow
    slow = whole(replace(SLOW, rows=(call("load", 0, 900),)))
    assert slow.title == "load took 900 ms of 1.00 s (load.py:3)"
    assert slow.culprit is not None
    assert (slow.culprit.function, slow.culprit.line) == ("load", 3)


def test_a_start_that_mostly_imported_has_imports_as_its_cause():
    phases = (Phase(kind=PhaseKind.IMPORT, name="pandas", offset_ns=0, duration_ns=3 * S, self_ns=3 * S),)
    assert whole(replace(START, phases=phases)).cause is Cause.IMPORT
    assert whole(replace(START, phases=phases, duration_ns=9 * S)).cause is Cause.UNKNOWN
    assert whole(replace(START, phases=phases, cause=Cause.DISK_IO)).cause is Cause.DISK_IO


def test_the_stall_in_it_says_what_the_tracer_does_not():
    slow = whole(SLOW, STALL)
    assert (slow.cause, slow.culprit, slow.stalls) == (STALL.cause, STALL.culprit, (STALL.id,))
    assert slow.stacks == STALL.stacks
    own = whole(replace(SLOW, cause=Cause.DNS, advice="mine"), STALL)
    assert (own.cause, own.advice) == (Cause.DNS, "mine")


def test_a_tracers_cause_and_place_stay_its_own():
    slow = whole(replace(SLOW, rows=(call("mine", 0, 900),)), STALL)
    assert slow.culprit is not None
    assert slow.culprit.function == "mine"
    assert kind_of(slow).all_evidence(slow)[-1] == "1 stall on its thread meanwhile"


def test_starts_in_time_are_not_of_the_slow_ones_bug():
    slow, in_time = START, replace(START, threshold_ns=9 * S)
    assert whole(slow).fingerprint != whole(in_time).fingerprint
    own, kept = (whole(replace(one, fingerprint="mine")) for one in (slow, in_time))
    assert own.fingerprint != kept.fingerprint


def test_a_fingerprint_of_the_tracer_s_own_is_any_text():
    one, same, other = (whole(replace(START, fingerprint=text)) for text in ("a b\n", "a b\n", "c"))
    assert one.fingerprint == same.fingerprint != other.fingerprint
    assert one.fingerprint.startswith("startup:")


@dataclass(frozen=True, slots=True, kw_only=True)
class Unregistered(ReportedFacts):
    kind = IssueKind("nobody-s")


class Renamed(Startup):
    kind = IssueKind("jank")


@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=40, deadline=None)
@given(start=any_of(Startup), slow=any_of(SlowMethod))
def test_what_is_taken_can_be_stored_and_read(start: Startup, slow: SlowMethod):
    for issue in (start, slow):
        try:
            found = whole(issue)
        except ValueError:
            continue
        assert issue_from_wire(to_wire(found)) == found


@pytest.mark.parametrize(
    "issue",
    [
        None,
        JANK,
        STALL,
        Unregistered(began_wall_ns=BEGAN, duration_ns=S),
        Renamed(began_wall_ns=BEGAN, duration_ns=S, threshold_ns=S),
        "startup",
        replace(START, duration_ns="long"),
        replace(START, duration_ns=float("nan")),
        replace(START, duration_ns=-1),
        replace(START, threshold_ns=1 << 60),
        replace(START, began_wall_ns=None),
        replace(START, title=b"bytes"),
        replace(START, phases=None),
        replace(START, phases=("import",)),
        replace(START, phases=(Phase(offset_ns=-1, duration_ns=0, self_ns=0),)),
        replace(START, phases=(Phase(depth=-1, **TIMES),)),
        replace(START, start="cold"),
        replace(SLOW, rows=[1]),
        replace(SLOW, rows=(call("f", 0, 1, count=-3),)),
        replace(SLOW, rows=(call("f", "0", 1),)),
        replace(SLOW, rows=(call("f", 10**5_000, 1),)),
        replace(SLOW, rows=(call("f", 0, 1, count=1 << 60),)),
        replace(SLOW, left_out=10**5_000),
        replace(SLOW, culprit="here"),
        replace(SLOW, stalls=(1,)),
    ],
)
def test_what_is_no_issue_is_refused(issue: Any):
    with pytest.raises((ValueError, TypeError, AttributeError)):
        whole(issue)


# ---- told and taken --------------------------------------------------------------------------


@dataclass
class Engine:
    """Tracers' way to an engine that a test plays."""

    now_ns: int = NOW
    rung: int = 0
    failed: list[tuple[str, Exception]] = field(default_factory=list)

    def __post_init__(self) -> None:
        tell = lambda part, error: self.failed.append((part, error))  # noqa: E731
        self.tracing = Tracing(
            scene=lambda: None,
            listeners=FrameListeners([], tell),
            failed=tell,
            monotonic_ns=lambda: self.now_ns,
            frames_begin=lambda: None,
        )
        self.tracing.run(self.ring)
        self.tracing.begin(SESSION, Clock(monotonic_ns=NOW, wall_ns=BEGAN))

    def ring(self) -> None:
        self.rung += 1

    def desk(self, admits: Callable[[int], bool] = lambda _: True) -> TracerDesk:
        return self.tracing.desks.open("mine", admits)

    def take(self, *, is_last: bool = False) -> list[Any]:
        return list(self.tracing.take(self.now_ns, [STALL], is_last=is_last))


def test_a_report_is_taken_when_its_stalls_are_known():
    engine = Engine()
    desk = engine.desk()
    assert engine.tracing.patience_s(engine.now_ns) is None
    assert desk.report(replace(SLOW, thread=STALL.thread))
    assert engine.rung == 1
    assert engine.tracing.patience_s(engine.now_ns) == SETTLE_NS / S
    assert engine.take() == []
    engine.now_ns += SETTLE_NS
    [slow] = engine.take()
    assert slow.stalls == (STALL.id,)
    assert engine.take() == []
    assert desk.counts() == {"tracer_mine_reported": 1}


def test_the_last_look_takes_all_reports():
    engine = Engine()
    engine.desk().report(START)
    assert [issue.kind.value for issue in engine.take(is_last=True)] == ["startup"]


def test_stalls_of_other_threads_and_times_are_not_its_own():
    engine = Engine()
    desk = engine.desk()
    desk.report(replace(SLOW, thread="elsewhere"))
    desk.report(replace(SLOW, thread=STALL.thread, began_wall_ns=BEGAN - 9 * S))
    assert [issue.stalls for issue in engine.take(is_last=True)] == [(), ()]


def test_what_is_refused_is_counted_and_takes_nothing_with_it():
    engine = Engine()
    desk = engine.desk()
    for issue in (None, START, replace(START, phases=7)):
        assert desk.report(issue)  # type: ignore[arg-type]
    assert len(engine.take(is_last=True)) == 1
    assert desk.counts() == {"tracer_mine_reported": 1, "tracer_mine_refused": 2}
    assert {part for part, _ in engine.failed} == {"issue of tracer mine"}


def test_a_flood_is_bounded_and_counted():
    engine = Engine()
    desk = engine.desk()
    taken = [desk.report(START) for _ in range(3 * WAITING_MAX)]
    assert taken.count(True) == WAITING_MAX
    assert engine.rung == WAITING_MAX
    assert len(engine.take(is_last=True)) == WAITING_MAX
    assert desk.counts() == {"tracer_mine_reported": WAITING_MAX, "tracer_mine_not_taken": 2 * WAITING_MAX}


def test_more_than_may_pass_is_suppressed_and_counted():
    engine = Engine()
    passes = iter([True, True, False, False])
    desk = engine.desk(lambda _: next(passes))
    for _ in range(4):
        desk.report(START)
    assert len(engine.take(is_last=True)) == 2
    assert desk.counts() == {"tracer_mine_reported": 2, "tracer_mine_suppressed_storm": 2}


def test_a_forked_child_has_none_of_its_parent_s():
    engine = Engine()
    desk = engine.desk()
    desk.report(START)
    desk.forget()
    engine.tracing.forget()
    assert not desk.report(START)
    assert engine.take(is_last=True) == []


# ---- lives -----------------------------------------------------------------------------------


class Faulty:
    """A tracer that writes down what is called, and raises where it is told to."""

    name = "mine"

    def __init__(self, *fails: str) -> None:
        self.fails = fails
        self.calls: list[str] = []
        self.desk: Any = None

    def _call(self, name: str) -> None:
        self.calls.append(name)
        if name in self.fails:
            raise RuntimeError(name)

    def init(self, desk: Any) -> None:
        self.desk = desk
        self._call("init")

    def start(self) -> None:
        self._call("start")

    def stop(self) -> None:
        self._call("stop")


def lived(*tracers: Faulty) -> tuple[Engine, PluggedTracers, Boundary]:
    engine, boundary = Engine(), Boundary(lambda _: None)
    plugged = [
        PluggedTracer(
            tracer,
            engine.tracing.desks.open(f"t{number}", lambda _: True),
            call=boundary.call,
            failed=boundary.failed,
        )
        for number, tracer in enumerate(tracers)
    ]
    return engine, PluggedTracers(plugged, engine.tracing.desks.leave), boundary


@pytest.mark.parametrize(
    ("fails", "calls"),
    [
        ((), ["init", "start", "stop"]),
        (("init",), ["init", "stop"]),
        (("start",), ["init", "start", "stop"]),
        (("stop",), ["init", "start", "stop"]),
        (("init", "stop"), ["init", "stop"]),
    ],
)
def test_a_tracer_that_fails_is_switched_off_alone(fails, calls):
    faulty, sound = Faulty(*fails), Faulty()
    engine, plugged, boundary = lived(faulty, sound)
    plugged.start()
    assert faulty.desk.report(START) == (not {"init", "start"} & set(fails))
    assert sound.desk.report(START)
    plugged.stop()
    plugged.stop()
    assert faulty.calls == calls
    assert sound.calls == ["init", "start", "stop"]
    assert sum(boundary.counts().values()) == len(fails)
    assert not sound.desk.report(START)
    assert len(engine.take(is_last=True)) == 2 - bool({"init", "start"} & set(fails))
    plugged.close()
    assert set(boundary.reasons()) <= {"tracer t0", "end of tracer t0"}


def test_a_failed_tracer_is_stopped_and_logged_once():
    faulty = Faulty()
    _, plugged, boundary = lived(faulty)
    plugged.start()
    faulty.desk.failed(ValueError("in a hook"))
    faulty.desk.failed(ValueError("again"))
    plugged.stop()
    assert faulty.calls == ["init", "start", "stop"]
    assert boundary.reasons() == {"tracer t0": "ValueError: in a hook"}
    assert boundary.counts() == {"failures_tracer t0": 1}


class WordlessError(Exception):
    """One that cannot say what it is, as those that format arguments that are gone."""

    def __str__(self) -> str:
        raise LookupError("no words")


def test_a_failure_without_words_is_one_like_others():
    faulty = Faulty()
    _, plugged, boundary = lived(faulty)
    plugged.start()
    faulty.desk.failed(WordlessError())
    assert faulty.calls == ["init", "start", "stop"]
    assert boundary.reasons() == {"tracer t0": "WordlessError, whose message cannot be read: LookupError"}
    boundary.failed("long", ValueError("x" * 9_999_999))
    assert len(boundary.reasons()["long"]) == 1_000


def test_in_a_forked_child_the_parent_s_are_stopped():
    sound = Faulty()
    engine, plugged, _ = lived(sound)
    plugged.start()
    sound.desk.report(START)
    plugged.forget()
    assert sound.calls == ["init", "start", "stop"]
    assert engine.take(is_last=True) == []
