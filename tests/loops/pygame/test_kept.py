"""A game whose frames a keeper stores: nothing of a verdict or of the store is loaded into it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.loops.slept import is_at
from tests.program.watching import Watched

pytest.importorskip("pygame")
pytestmark = [
    pytest.mark.native,
    pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs pidfd_open"),
]
GAME = """
import sys, time
import loopcanary
canary = loopcanary.install(store=sys.argv[1], keeper=True)
import pygame

pygame.init()
pygame.display.set_mode((10, 10))
clock = pygame.time.Clock()
for frame in range(30):
    pygame.event.get()
    if frame == 20:
        began_ns = time.time_ns()
        time.sleep(0.75)
        middle_ns = (began_ns + time.time_ns()) // 2
    pygame.display.flip()
    clock.tick(60)
assert canary.kept is not None
print(middle_ns)
print(*sorted({name.split(".")[1] for name in sys.modules if name.startswith("loopcanary.")}))
"""


def test_frames_of_a_game_are_judged_by_its_keeper(tmp_path: Path):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("LOOPCANARY")}
    store = tmp_path / "store"
    done = subprocess.run(
        [sys.executable, "-c", GAME, str(store)],
        env=clean | {"SDL_VIDEODRIVER": "dummy", "SDL_AUDIODRIVER": "dummy"},
        capture_output=True,
        text=True,
        timeout=280,
        check=True,
    )
    middle_ns, loaded = done.stdout.splitlines()[-2:]
    parts = set(loaded.split())
    assert parts.isdisjoint({"diagnosis", "store", "flight", "wire", "words", "report"})
    report = Watched(store=store, engine="native").report()
    [stall] = [stall for stall in report["stalls"] if is_at(stall, int(middle_ns))]
    janks = [issue for issue in report["issues"] if issue["kind"] == "jank"]
    assert stall["id"] in {each for jank in janks for frame in jank["worst"] for each in frame["stall_ids"]}
    [frames] = report["sessions"][0]["frames"]
    assert frames["loop"] == "pygame"
    assert frames["frozen"] >= 1
