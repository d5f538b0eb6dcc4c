"""From what probes tell to issues and figures."""

from __future__ import annotations

import time
from typing import Any

import pytest
from tests.building.stalls import SESSION, stall

from loopcanary.model import Cause, Clock, IdleLag, InputLag, Jank, TraceFigures, TracerState
from loopcanary.model.tracer_states import TracerStep
from loopcanary.protocols.kinds import issue_from_wire
from loopcanary.registry import REGISTRY, TRACERS
from loopcanary.tracers.frames import FrameListeners
from loopcanary.tracers.tracing import SETTLE_NS, Tracing
from loopcanary.wire import from_wire, to_wire

MS = 1_000_000
S = 1_000 * MS
WALL = 1_700_000_000 * S
CLOCK = Clock(monotonic_ns=0, wall_ns=WALL)


class Lives:
    """Those of a world's tracers."""

    heard = None

    def __init__(self) -> None:
        self.off: set[str] = set()
        self.made: dict[str, Any] = {}

    def add(self, life: Any) -> None:
        self.made[life.name] = life


class World:
    def __init__(self) -> None:
        self.rung = 0
        self.lives = Lives()
        self.failures: list[Any] = []
        self.scene: str | None = None
        self.tracing = Tracing(
            scene=lambda: self.scene,
            listeners=FrameListeners([], lambda *_: None),
            failed=lambda *what: self.failures.append(what),
            monotonic_ns=time.monotonic_ns,
            frames_begin=lambda: None,
            lives=self.lives,
        )
        self.tracing.run(self.ring)
        self.tracing.begin(SESSION, CLOCK)

    def ring(self) -> None:
        self.rung += 1


@pytest.fixture
def world() -> Any:
    made = World()
    yield made
    assert made.failures == []


def janky_slice(world: World) -> int:
    tracer = world.tracing.frames("pygame")
    world.scene = "boss"
    now = 0
    tracer.frame_drawn(now)
    for duration in [20] * 50 + [400] + [20] * 230:
        now += duration * MS
        tracer.frame_drawn(now)
    return now


def a_stall(begin_ms: int, duration_ms: int, **changes: Any) -> Any:
    return stall(
        thread="MainThread", began_wall_ns=WALL + begin_ms * MS, duration_ns=duration_ms * MS, **changes
    )


def test_jank_has_the_stacks_of_the_stalls_in_its_worst_frames(world):
    end = janky_slice(world)
    assert world.rung == 1
    inside = a_stall(1_010, 380, id="s-1")
    elsewhere = a_stall(4_000, 10, id="s-2")
    other_thread = stall(thread="worker", began_wall_ns=WALL + 1_010 * MS, duration_ns=380 * MS, id="s-3")
    (jank,) = world.tracing.take(end + SETTLE_NS, [elsewhere, other_thread, inside], is_last=False)
    assert isinstance(jank, Jank)
    assert (jank.scene, jank.culprit, jank.cause) == ("boss", inside.culprit, inside.cause)
    assert jank.stalls == ("s-1", "s-2")
    assert jank.worst[0].stalls == ("s-1",)
    assert jank.stacks == inside.stacks
    assert jank.figures.drop_level == (280, 0, 1, 0, 0)
    assert "of 60 fps in boss, worst frame 400 ms" in jank.title


def test_jank_that_no_stall_explains_says_how_to_see_more(world):
    end = janky_slice(world)
    (jank,) = world.tracing.take(end + SETTLE_NS, [], is_last=False)
    assert (jank.cause, jank.culprit, jank.stacks) == (Cause.UNKNOWN, None, ())
    assert "threshold" in jank.advice


def test_an_issue_waits_until_its_stalls_can_be_known(world):
    end = janky_slice(world)
    assert list(world.tracing.take(end, [], is_last=False)) == []
    assert world.tracing.patience_s(end) == pytest.approx(SETTLE_NS / S)
    assert len(world.tracing.take(end, [], is_last=True)) == 1
    assert world.tracing.patience_s(end) is None


def test_a_bug_has_one_fingerprint_in_all_sessions(world):
    def fingerprint() -> str:
        other = World()
        end = janky_slice(other)
        return other.tracing.take(end, [a_stall(1_010, 380)], is_last=True)[0].fingerprint

    assert fingerprint() == fingerprint()


def test_late_input_tells_what_ran_before_it(world):
    trace = world.tracing.input("qt")
    trace.handled("QTimerEvent to Clock", 0, 0, 300 * MS)
    trace.handled("QMouseEvent to Button", 100 * MS, 300 * MS, 340 * MS)
    found = world.tracing.take(2 * S, [a_stall(10, 280, id="s-1", callback="tick")], is_last=False)
    late = found[-1]
    assert isinstance(late, InputLag)
    assert (late.event, late.duration_ns, late.queued_ns) == ("QMouseEvent to Button", 240 * MS, 200 * MS)
    assert [(one.name, one.duration_ns // MS, one.stall) for one in late.before] == [
        ("QTimerEvent to Clock", 200, None),
        ("tick", 190, "s-1"),
    ]
    assert late.stalls == ("s-1",)


def test_long_idle_work_is_named(world):
    world.tracing.idle("tk").ran("build_index", 0, 2_500 * MS)
    (late,) = world.tracing.take(4 * S, [], is_last=False)
    assert isinstance(late, IdleLag)
    assert (late.handler, late.runs, late.title) == ("build_index", 1, "idle work build_index took 2.50 s")


def test_figures_are_worth_storing_when_a_slice_is_over(world):
    assert world.tracing.news() is None
    janky_slice(world)
    news = world.tracing.news()
    assert isinstance(news, TraceFigures)
    assert [one.scene for one in news.frames] == ["boss"]
    assert world.tracing.news() is None


def test_what_windows_tell_that_come_and_go_is_one(world):
    for _ in range(1_000):
        tracer = world.tracing.frames("qt")
        tracer.frame_drawn(0)
        tracer.frame_drawn(20 * MS)
        tracer.close()
    (scene,) = world.tracing.figures().frames
    assert scene.figures.frames == 1_000


def test_a_forked_child_begins_with_nothing(world):
    janky_slice(world)
    world.tracing.forget()
    world.tracing.run(world.ring)
    world.tracing.begin(SESSION, CLOCK)
    assert world.tracing.figures().is_empty
    assert list(world.tracing.take(100 * S, [], is_last=True)) == []


def test_issues_and_figures_come_back_from_the_wire(world):
    end = janky_slice(world)
    world.tracing.input("qt").handled("click", 100 * MS, 300 * MS, 340 * MS)
    world.tracing.idle("tk").spun("poll", 0, 1_500 * MS, 20_000)
    issues = world.tracing.take(end, [a_stall(1_010, 380), a_stall(90, 250)], is_last=True)
    assert [type(issue) for issue in issues] == [Jank, InputLag, IdleLag]
    assert [issue_from_wire(to_wire(issue)) for issue in issues] == list(issues)
    figures = world.tracing.figures()
    assert from_wire(TraceFigures, to_wire(figures)) == figures


class Own:
    """The program's tracer of idle work, in the place of the built-in one."""

    events = 0

    def __init__(self) -> None:
        self.calls: list[str] = []

    def init(self, _desk: Any) -> None:
        self.calls.append("init")

    def start(self) -> None:
        self.calls.append("start")

    def stop(self) -> None:
        self.calls.append("stop")

    def destroy(self) -> None:
        self.calls.append("destroy")

    def trace(self, _loop_kind: str) -> Any:
        return self

    def figures(self, _clock: Clock) -> tuple[()]:
        return ()


def test_a_tracer_lives_from_the_first_probe_to_the_last_issue(world, monkeypatch):
    monkeypatch.setattr(REGISTRY, "_own", {})
    REGISTRY.add(TRACERS, "idle", Own)
    own = world.tracing.idle("tk")
    assert own is world.tracing.idle("tk")
    assert own.calls == ["init", "start"]
    world.tracing.end()
    assert own.calls == ["init", "start", "stop"]
    world.tracing.close()
    assert own.calls == ["init", "start", "stop", "destroy"]


def counted(world: World, at: int) -> tuple[int, int, int]:
    """How much each built-in tracer has counted, after one more of each."""
    world.tracing.frames("tk").frame_drawn(at)
    world.tracing.input("tk").handled("Press", at, at, at + 1)
    world.tracing.idle("tk").ran("thumbs", at, at + 1)
    found = world.tracing.figures()
    return (
        sum(scene.figures.frames for scene in found.frames),
        sum(one.events for one in found.input),
        sum(one.runs for one in found.idle),
    )


def test_a_stopped_tracer_counts_nothing_until_it_is_started(world):
    frames, names = world.tracing.frames("tk"), ("frames", "input", "idle")
    world.tracing.frames = lambda _: frames
    frames.frame_drawn(0)
    assert [counted(world, ms * MS) for ms in (16, 32)] == [(1, 1, 1), (2, 2, 2)]
    assert [world.lives.made[name].step(TracerStep.STOP) for name in names] == [None] * 3
    assert [counted(world, ms * MS) for ms in (48, 9_000, 9_016)] == [(2, 2, 2)] * 3
    frames.at_refresh_rate(50)
    assert counted(world, 9_032 * MS) == (2, 2, 2)
    assert [world.lives.made[name].step(TracerStep.START) for name in names] == [None] * 3
    assert counted(world, 9_048 * MS) == (3, 3, 3)
    assert [scene.figures.worst_ns for scene in world.tracing.figures().frames] == [16 * MS, 16 * MS]


def test_what_was_stopped_is_not_started_with_the_next_engine(world):
    world.lives.off.add("frames")
    trace = world.tracing.frames("tk")
    assert world.lives.made["frames"].state is TracerState.INITED
    world.tracing.run(world.ring)
    world.tracing.begin(SESSION, CLOCK)
    assert world.lives.made["frames"].state is TracerState.INITED
    assert trace.is_off


def test_a_tracer_that_cannot_be_made_gives_way_to_ours(monkeypatch):
    monkeypatch.setattr(REGISTRY, "_own", {})
    REGISTRY.add(TRACERS, "idle", "no_such_module:X")
    world = World()
    world.tracing.idle("tk").ran("thumbs", 0, 5)
    [idle] = world.tracing.figures().idle
    assert (idle.name, idle.runs) == ("thumbs", 1)
    [(part, error)] = world.failures
    assert (part, type(error)) == ("tracer idle", ModuleNotFoundError)


def test_the_last_figures_are_given_when_all_was_taken(world):
    janky_slice(world)
    world.tracing.end()
    assert [scene.scene for scene in world.tracing.close().frames] == ["boss"]
    assert world.tracing.figures() == TraceFigures()
