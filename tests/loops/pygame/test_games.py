"""A game's frames: every block is seen once, at its line, with its cause and length; nothing else is."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.loops import blocked
from tests.loops.blocked import BlockedRun, assert_length, assert_shared, is_explained
from tests.program.watching import (
    PROGRAMS,
    Marks,
    Watched,
    admitted,
    is_by_the_host,
    not_by_the_host,
    wall_ns,
)

pytest.importorskip("pygame", exc_type=ImportError)
pytestmark = pytest.mark.native

PROGRAM = Path(__file__).parent / "game_blocks.py"
OWN_MARKS = Marks(PROGRAM.read_text())
SHARED = {*blocked.SHARED, "python_signal_handler"}
OWN = {"key_handler": "key_handler", "scaling": "scale", "scene_of_a_frame": "scene_of_a_frame"}
OWN_CAUSES = {"scaling": ("native-cpu", "cpu")}
LOOPS_OF_TWO_LINES = {"scaling"}
HEADLESS = {"SDL_VIDEODRIVER": "dummy", "SDL_AUDIODRIVER": "dummy", "PYGAME_HIDE_SUPPORT_PROMPT": "1"}
PRELUDE = f"""
import os, sys, threading, time
os.environ.update({HEADLESS!r})
import pygame
pygame.display.init()
screen = pygame.display.set_mode((160, 120))
clock = pygame.time.Clock()
"""


class GameRun(BlockedRun):
    """One run of the program."""

    def __init__(self, folder: Path) -> None:
        watched = Watched(store=folder / "store", engine="native")
        truth_file = folder / "truth.json"
        watched.run(PROGRAM, PROGRAMS, truth_file, folder, *sorted(SHARED), *OWN, cwd=folder)
        super().__init__(truth_file, watched.report())


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> GameRun:
    return GameRun(tmp_path_factory.mktemp("game"))


@pytest.mark.parametrize("kind", sorted(SHARED))
def test_a_frame_that_blocks(run, kind):
    stall = assert_shared(run, kind)
    assert (stall["loop"], stall["callback"]["name"]) == ("pygame", "frame")


@pytest.mark.parametrize("kind", OWN)
def test_a_games_own_ways_to_block(run, kind):
    stall = assert_length(run, kind)
    function, line = OWN_MARKS.find(f"culprit of {OWN[kind]}")
    assert stall["culprit"]["function"] == function
    assert stall["culprit"]["line"] in ((line, line - 1) if kind in LOOPS_OF_TWO_LINES else (line,))
    assert stall["cause"] in admitted(stall, OWN_CAUSES.get(kind, ("sleep",)))
    assert stall["scene"] == ("dungeon" if kind == "scene_of_a_frame" else None)


def test_nothing_else_is_reported_but_what_the_host_did(run):
    assert [stall for stall in run.others() if not is_explained(stall)] == []


def test_each_blocked_frame_dropped_as_many_as_its_time_says(run):
    (session,) = run.report["sessions"]
    frames = session["frames"]
    assert {"dungeon", None} <= {scene["scene"] for scene in frames}
    # Most of the blocks are a quarter of a second long. Those sized by a first try may come out shorter; ten
    # refreshes of 60 Hz without a frame are `middle` at least.
    long = [kind for kind, facts in run.truth.items() if facts["end_ns"] - facts["begin_ns"] > 10.5e9 / 60]
    worse = sum(scene["drop_level"][level] for scene in frames for level in ("middle", "high", "frozen"))
    assert worse >= len(long) >= 8
    assert sum(sum(scene["drop_level"].values()) for scene in frames) == sum(
        scene["frames"] for scene in frames
    )


def test_jank_names_the_stalls_in_its_worst_frames(run):
    jank = [issue for issue in run.report["issues"] if issue["kind"] == "jank"]
    stalls = {stall["id"]: stall for stall in run.stalls}
    # A crowded machine drops frames without any stall.
    stalled = [issue for issue in jank if issue["worst"][0]["stall_ids"]]
    assert stalled
    for issue in stalled:
        worst = issue["worst"][0]
        if not is_by_the_host(stalls[worst["stall_ids"][0]]):
            assert issue["culprit"] is not None
            assert issue["stacks"]
        for stall_id in worst["stall_ids"]:
            stall = stalls[stall_id]
            assert wall_ns(stall["began_at"]) < wall_ns(worst["began_at"]) + worst["duration_ms"] * 1e6


def test_a_key_that_is_answered_late_is_an_input_issue(run):
    facts = run.truth["key_handler"]
    late = [
        issue
        for issue in run.report["issues"]
        if issue["kind"] == "input" and facts["wall_before_ns"] - 1e9 < wall_ns(issue["began_at"])
    ]
    assert [issue["event"] for issue in late] == ["KeyDown"]
    assert late[0]["duration_ms"] > (facts["end_ns"] - facts["begin_ns"]) / 1e6
    if not is_by_the_host(run.stall_of("key_handler")):
        assert late[0]["culprit"]["function"] == "key_handler"
    (session,) = run.report["sessions"]
    (figures,) = session["input"]
    assert (figures["events"], figures["worst"]) == (1, "KeyDown")


# ---- coming, going, and dying ------------------------------------------------------------------------

LATE = (
    PRELUDE
    + """
from pygame.display import flip
from pygame.time import Clock, wait
before = clock
originals = flip, wait, Clock, pygame.event.get, pygame.quit
class Game:
    show = flip
flip()

import loopcanary
loopcanary.install(store=sys.argv[1], console=False)
class Later:
    show = pygame.display.flip
assert flip is pygame.display.flip
clock = Clock()
assert isinstance(clock, pygame.time.Clock) and isinstance(before, pygame.time.Clock)
assert pygame.display.flip.__name__ == "flip" and pygame.display.flip.__doc__ == originals[0].__doc__
assert clock.get_time() == 0 and clock.tick(1000) >= 0 and "Clock" in repr(clock)
sys.path.insert(0, sys.argv[2])
from blocking import until_sampled
def slow():
    for seconds in until_sampled(0.25):
        time.sleep(seconds)
flip()
slow()
Later().show()
heard = []
@loopcanary.on_frame
def hear(frame):
    heard.append(frame)
flip()
assert len(heard) == 1 and heard[0].loop == "pygame" and heard[0].dropped >= 0, heard
try:
    pygame.display.update("nonsense")
except (TypeError, ValueError) as error:
    assert not error.__cause__
else:
    raise AssertionError("an error of the program's is its own")
told = loopcanary.statistics()
assert sum(scene["frames"] for scene in told["frames"]) == 2, told["frames"]
loopcanary.uninstall()
assert (flip, wait, Clock, pygame.event.get, pygame.quit) == originals
time.sleep(0.25)
flip()
"""
)


def test_a_game_that_runs_already_is_watched_and_left_as_it_was(tmp_path):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("LOOPCANARY")}
    done = subprocess.run(
        [sys.executable, "-c", LATE, str(tmp_path / "store"), str(PROGRAMS)],
        env=clean,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    report = Watched(store=tmp_path / "store", engine="native").report()
    (stall,) = not_by_the_host(report["stalls"])
    assert (stall["culprit"]["function"], stall["loop"]) == ("slow", "pygame")


FOREVER = (
    PRELUDE
    + """
for number in range(100_000):
    pygame.event.get()
    if number == 20:
        pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=1))
        pygame.event.get()
        time.sleep(0.3)
    pygame.display.flip()
    clock.tick(60)
"""
)


def test_what_is_known_of_the_frames_outlives_a_kill(tmp_path):
    watched = Watched(store=tmp_path / "store", engine="native")
    # A keeper has of the frames what was over: slices of six seconds.
    process = watched.start("-c", FOREVER, variables={"LOOPCANARY_KEEPER": "0"})
    try:
        deadline = time.monotonic() + 250
        while time.monotonic() < deadline:
            # A busy machine drops frames before: that is an issue, too.
            if (tmp_path / "store" / "loopcanary.db").exists() and any(
                issue["kind"] == "input" for issue in watched.report()["issues"]
            ):
                break
            time.sleep(0.1)
    finally:
        process.kill()
        process.communicate()
    report = watched.report()
    (session,) = report["sessions"]
    assert session["end"] == "killed"
    assert sum(scene["frames"] for scene in session["frames"]) >= 19
    assert [issue["event"] for issue in report["issues"] if issue["kind"] == "input"] == ["KeyDown"]
