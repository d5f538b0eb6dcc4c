"""CPU that a pygame game takes at 240 frames a second, with loopcanary and without.

Both games live at the same time on one core and play in turns; the one whose turn it is not is paused: it
waits for its next frame and shows none. (One that waited for its turn in any other way would stall for a
second, and the report of that would be counted as what frames cost.) Their time is that of the process: all
its threads, the watchdog's too. Two games: one that draws a small scene, and one that draws nothing at all,
where loopcanary's own share is as large as it can be.
"""

from __future__ import annotations

import json
import os
import select
import statistics
import sys
import time

from harness import table
from harness.children import DRIVER_CPU, Child, alternate, pair, start_watching, tell

FRAMES_PER_SECOND = 240
FRAMES = table.sized(240, 24)
FRAMES_BEFORE = 24
"""Until the game is under way again."""
SLICES = table.sized(12, 2)
SPRITES = 60


def child(role: str) -> None:
    """Plays so many frames at each line of input, and answers how long it took and what it cost."""
    os.environ.update(SDL_VIDEODRIVER="dummy", SDL_AUDIODRIVER="dummy", PYGAME_HIDE_SUPPORT_PROMPT="1")
    start_watching()
    import pygame

    pygame.display.init()
    screen = pygame.display.set_mode((640, 360))
    sprite = pygame.Surface((48, 48)).convert()
    clock = pygame.time.Clock()

    def draw(number: int) -> None:
        screen.fill((10, 20, 30))
        for index in range(SPRITES):
            screen.blit(sprite, ((number * 3 + index * 53) % 600, (number + index * 31) % 320))

    def play(frames: int) -> tuple[float, float]:
        began_s, cpu_s = time.perf_counter(), time.process_time()
        for number in range(frames):
            pygame.event.get()
            if role == "scene":
                draw(number)
            pygame.display.flip()
            clock.tick(FRAMES_PER_SECOND)
        return time.process_time() - cpu_s, time.perf_counter() - began_s

    def question() -> str:
        while not select.select([sys.stdin], [], [], 0)[0]:
            clock.tick(FRAMES_PER_SECOND)
        return sys.stdin.readline()

    play(FRAMES)
    tell("ready")
    while line := question():
        play(FRAMES_BEFORE)
        tell(play(json.loads(line)))


def measure() -> None:
    """Prints the ratio of both games' CPU, and the share of a core that loopcanary takes."""
    os.sched_setaffinity(0, {DRIVER_CPU})
    for role, what in (("scene", "a game that draws 60 sprites"), ("nothing", "a game that draws nothing")):
        with pair(role) as (watched, plain):
            compare(what, watched, plain)


def compare(what: str, watched: Child, plain: Child) -> None:
    """Two rows."""
    costs = alternate(lambda: watched.ask(FRAMES)[0], lambda: plain.ask(FRAMES)[0], SLICES)
    cpu_s, wall_s = plain.ask(FRAMES)
    note = f"{1e6 * cpu_s / FRAMES:.0f} us a frame without, {FRAMES / wall_s:.0f} frames/s"
    table.told(f"{what}, CPU", table.Ratio.of(costs), note=note)
    more_s = statistics.median(with_it - without for with_it, without in costs) / FRAMES
    share = 100 * more_s * FRAMES_PER_SECOND
    table.at_most(f"{what}, more CPU", share, 1.0, unit="% of a core", note=f"{1e6 * more_s:.1f} us a frame")


if __name__ == "__main__":
    table.run(measure, child)
