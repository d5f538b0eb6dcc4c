"""Frames that a program shows, from the tracer through the engine to store, console and report."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.program.watching import Watched

from loopcanary.assembly.tracing import all as tracers
from loopcanary.assembly.tracing.all import tracing_of
from loopcanary.engine import Boundary
from loopcanary.engine.traced import EngineTraces
from loopcanary.tracers.tracing import Tracing

PROGRAM = """
import asyncio, sys, time
import loopcanary
from loopcanary.assembly.tracing.all import tracing_of

engine = sys.argv[2]
canary = loopcanary.install(
    store=sys.argv[1], engine="native" if engine == "kept" else engine, keeper=engine == "kept", {settings}
)
{before}

def show_frames():
    trace = tracing_of(canary).frames("drawn by hand")
    now = time.monotonic_ns() - 8 * 10**9
    trace.frame_drawn(now)
    with loopcanary.scene("boss"):
        for duration in [20] * 50 + [800] + [20] * 230:
            now += duration * 10**6
            trace.frame_drawn(now)

async def main():
    show_frames()
    await asyncio.sleep(0)

asyncio.run(main())
{after}
if engine == "kept":
    assert canary.kept is not None
    sys.modules["loopcanary.assembly.kept"].END_PATIENCE_S = 60  # a keeper on a busy host
loopcanary.uninstall()
"""
KEPT = pytest.param("kept", marks=pytest.mark.native)
ENGINES = [pytest.param("native", marks=pytest.mark.native), "portable"]


def run(store: Path, engine: str, *, settings: str = "", before: str = "", after: str = "", status: int = 0):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("LOOPCANARY")}
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            PROGRAM.format(settings=settings, before=before, after=after),
            str(store),
            engine,
        ],
        env=clean,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == status, done.stderr
    return done


def issues(report: dict[str, Any]) -> list[dict[str, Any]]:
    return [issue for issue in report["issues"] if issue["kind"] == "jank"]


def stored(store: Path, engine: str) -> dict[str, Any]:
    return Watched(store=store, engine="native" if engine == "kept" else engine).report()


@pytest.mark.parametrize("engine", [*ENGINES, KEPT])
def test_jank_is_stored_printed_and_reported(tmp_path, engine):
    after = "print(loopcanary.statistics()['frames'][0]['scene'])"
    done = run(tmp_path / "store", engine, settings="console=True", after=after)
    report = stored(tmp_path / "store", engine)
    (jank,) = issues(report)
    assert (jank["scene"], jank["loop"], jank["frames"]["frozen"]) == ("boss", "drawn by hand", 1)
    # 1 s, a frame of 0.8 s, and as many of 20 ms as fill the slice of 6 s.
    levels = {"best": 50 + 210, "normal": 0, "middle": 0, "high": 0, "frozen": 1}
    assert jank["frames"]["drop_level"] == levels
    (session,) = report["sessions"]
    (scene,) = session["frames"]
    assert (scene["frames"], scene["worst_ms"]) == (281, 800.0)
    assert sum(part["frames"] for part in scene["slices"]) == 281
    assert session["statistics"]["jank_reported"] == 1
    assert done.stdout.strip() == "boss"
    assert "[loopcanary] jank: " in done.stderr


@pytest.mark.parametrize("engine", ENGINES)
def test_interceptors_see_jank_and_may_change_or_drop_it(tmp_path, engine):
    change = """
from dataclasses import replace
@loopcanary.on_issue
def change(issue):
    if issue.kind.value == "jank":
        return replace(issue, title="seen by " + issue.scene)
    return issue
"""
    run(tmp_path / "changed", engine, before=change)
    (jank,) = issues(Watched(store=tmp_path / "changed", engine=engine).report())
    assert jank["title"] == "seen by boss"
    drop = """
@loopcanary.on_issue
def drop(issue):
    return None if issue.kind.value == "jank" else issue
"""
    run(tmp_path / "dropped", engine, before=drop)
    report = Watched(store=tmp_path / "dropped", engine=engine).report()
    assert issues(report) == []
    assert report["sessions"][0]["statistics"]["issues_dropped_interceptor"] == 1


def test_listeners_hear_of_each_frame_and_may_leave(tmp_path):
    before = """
heard, later = [], []
@loopcanary.on_frame
def hear(frame):
    heard.append(frame.dropped)
@loopcanary.on_frame
def bad(frame):
    raise RuntimeError("not my day")
loopcanary.on_frame(lambda frame: later.append(frame.dropped), on_thread=True)
"""
    after = """
deadline = time.monotonic() + 60
while len(later) < 281 and time.monotonic() < deadline:
    time.sleep(0.01)
print(len(heard), max(heard), later == heard)
"""
    done = run(tmp_path / "store", "portable", before=before, after=after)
    assert done.stdout.split() == ["281", "47", "True"]
    assert done.stderr.count("not my day") == 1


@pytest.mark.native
def test_frames_of_a_killed_program_are_taken_in(tmp_path):
    run(tmp_path / "store", "kept", after="import os; os.kill(os.getpid(), 9)", status=-9)
    report = stored(tmp_path / "store", "kept")
    [session] = report["sessions"]
    [scene] = session["frames"]
    assert (session["end"], scene["frames"], len(issues(report))) == ("killed", 261, 1)


@pytest.mark.native
def test_jank_is_seen_where_it_cannot_be_noted(tmp_path):
    before = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
@loopcanary.on_issue
def see(issue):
    if issue.kind.value == "jank":
        print(issue.scene, flush=True)
    return issue
"""
    assert run(tmp_path / "store", "native", before=before).stdout == "boss\n"


@pytest.mark.native
def test_frames_go_on_where_the_program_takes_over(tmp_path):
    take_over = """
frames = [one["frames"] for one in loopcanary.statistics()["frames"]]
loopcanary.on_issue(lambda issue: issue)
assert canary.kept is None
assert frames == [one["frames"] for one in loopcanary.statistics()["frames"]]
loopcanary.uninstall()
sys.exit()
"""
    run(tmp_path / "store", "kept", after=take_over)
    [session] = stored(tmp_path / "store", "kept")["sessions"]
    assert session["frames"][0]["frames"] == 281


@pytest.mark.native
def test_jank_is_no_stall_that_fails_a_run(tmp_path):
    run(tmp_path / "store", "native", settings="fail_on_stall=True, threshold='1h'", status=0)
    report = Watched(store=tmp_path / "store", engine="native").report()
    assert len(issues(report)) == 1
    assert report["stalls"] == []


def test_two_threads_make_one(monkeypatch):
    """The drain, and a program that asks for its figures: none replaces what the other has wired."""
    canary = canary_with_traces()
    first_is_made, both_are_made = threading.Event(), threading.Event()

    class Slow(Tracing):
        def __init__(self, **settings: Any) -> None:
            super().__init__(**settings)
            if first_is_made.is_set():
                both_are_made.set()
            else:
                first_is_made.set()
                both_are_made.wait(0.5)

    monkeypatch.setattr(tracers, "Tracing", Slow)
    with ThreadPoolExecutor(2) as pool:
        one = pool.submit(tracing_of, canary)
        assert first_is_made.wait(60)
        other = pool.submit(tracing_of, canary)
    assert one.result() is other.result() is canary.tracing.traces


def test_figures_wait_for_the_making():
    """Whose begin loads modules: figures asked for meanwhile would be empty, though there are some."""
    canary, begins, was_asked, has_begun = canary_with_traces(), *(threading.Event() for _ in range(3))
    asked_begun = []

    def begin(_: object) -> None:
        begins.set()
        was_asked.wait(0.5)
        has_begun.set()

    canary.tracing.engine_runs(begin)
    with ThreadPoolExecutor(2) as pool:
        pool.submit(tracing_of, canary)
        assert begins.wait(60)
        canary.tracing.traces.figures = lambda: (asked_begun.append(has_begun.is_set()), was_asked.set())
        pool.submit(canary.tracing.figures)
    assert asked_begun == [True]


def canary_with_traces() -> Any:
    boundary = Boundary(say=lambda _: None)
    return SimpleNamespace(boundary=boundary, tracing=EngineTraces(boundary))
