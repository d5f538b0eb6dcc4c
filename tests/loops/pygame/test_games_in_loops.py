"""A game that turns by another loop's callbacks: its frame ends with the callback that flipped.

Neither the loop's wait nor its other callbacks are taken for the game's."""

from __future__ import annotations

import pytest
from tests.program.watching import PROGRAMS, Watched, unexplained

pytestmark = pytest.mark.native

GAME = """
import asyncio, os, sys, time
sys.path.insert(0, sys.argv[2])
os.environ.update(SDL_VIDEODRIVER="dummy", SDL_AUDIODRIVER="dummy", PYGAME_HIDE_SUPPORT_PROMPT="1")
import pygame
from blocking import until_sampled
pygame.display.init()
pygame.display.set_mode((16, 12))

def blocks():
    for seconds in until_sampled(0.3):
        time.sleep(seconds)

async def play():
    for _ in range(3):
        pygame.display.flip()
        await asyncio.sleep(0)
    asyncio.get_running_loop().call_soon(blocks)
    pygame.display.flip()
    await asyncio.sleep(0)
    pygame.display.flip()
    await asyncio.sleep(2)  # the loop waits: nothing blocks it

factory = None
if sys.argv[1] == "uvloop":
    import uvloop
    factory = uvloop.new_event_loop
with asyncio.Runner(loop_factory=factory) as runner:
    runner.run(play())
"""


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_the_loop_s_waits_and_callbacks_are_not_the_game_s(tmp_path, loop):
    pytest.importorskip("pygame", exc_type=ImportError)
    if loop == "uvloop":
        pytest.importorskip("uvloop")
    watched = Watched(store=tmp_path / "store", engine="native")
    (tmp_path / "game.py").write_text(GAME)
    watched.run(tmp_path / "game.py", loop, PROGRAMS, cwd=tmp_path)
    stalls = watched.report()["stalls"]
    (blocked,) = [stall for stall in stalls if (stall["culprit"] or {}).get("function") == "blocks"]
    others = unexplained(stall for stall in stalls if stall is not blocked)
    assert all(stall["duration_ms"] < 2000 for stall in others)
    assert blocked["callback"]["name"].endswith("blocks"), blocked["callback"]
