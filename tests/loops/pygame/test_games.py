"""Games that are watched late, and that are killed. (Their blocks: ../test_blocks.py.)"""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest
from tests.loops.blocked import TOLERANCE_MS
from tests.program.watching import PROGRAMS, Watched, admitted, not_by_the_host

pytest.importorskip("pygame", exc_type=ImportError)
pytestmark = pytest.mark.native

HEADLESS = {"SDL_VIDEODRIVER": "dummy", "SDL_AUDIODRIVER": "dummy", "PYGAME_HIDE_SUPPORT_PROMPT": "1"}
PRELUDE = f"""
import os, sys, threading, time
os.environ.update({HEADLESS!r})
import pygame
pygame.display.init()
screen = pygame.display.set_mode((160, 120))
clock = pygame.time.Clock()
"""
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
    (stall,) = [stall for stall in not_by_the_host(report["stalls"]) if stall["samples"]]
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


FRAME_MS = 200
HELD_AT_THE_END_OF_A_WAIT = (
    PRELUDE + f"""
import ctypes
sys.path.insert(0, {str(PROGRAMS)!r})
"""
    """
import loopcanary
from blocking import until_sampled
loopcanary.statistics()  # which loads modules with its first call, and gives up the GIL meanwhile
sys.setswitchinterval(1_000)  # only who waits gives up the GIL
ticking, holds = [], []
def decode():
    while not ticking:
        time.sleep(0.001)
    holds.append(True)
    for seconds in until_sampled(0.6):
        ctypes.PyDLL(None).usleep(int(seconds * 1e6))
decoder = threading.Thread(target=decode, name="decoder")
decoder.start()
pygame.display.flip()
clock.tick(5)
while not holds:  # a crowded machine may not run the decoder within a frame
    pygame.display.flip()
    ticking.append(True)
    clock.tick(5)
    ticking.clear()
print(clock.get_time())
pygame.display.flip()
pygame.quit()
decoder.join()
"""
)


def test_a_wait_for_the_gil_at_the_end_of_a_wait_for_the_next_frame_is_a_stall(tmp_path):
    watched = Watched(store=tmp_path / "store", engine="native")
    done = watched.run("-c", HELD_AT_THE_END_OF_A_WAIT)
    held = [
        stall for stall in watched.report()["stalls"] if (stall["holder"] or {}).get("thread") == "decoder"
    ]
    (stall,) = held
    assert stall["cause"] in admitted(stall, ("gil",))
    assert stall["callback"]["name"] is None
    assert stall["holder"]["culprit"]["function"] == "decode"
    # Without what was left of the frame's 200 ms, which are in all of a tick's time.
    assert stall["duration_ms"] < int(done.stdout) - FRAME_MS + TOLERANCE_MS
    if "host" not in admitted(stall, ()):
        assert stall["duration_ms"] > 250
