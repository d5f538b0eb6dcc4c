"""A game whose frames block in the ways of tests/program/programs/blocks.py, and in some of their own.

game_blocks.py BLOCKS_FOLDER TRUTH_FILE FOLDER [KIND...]
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from importlib import import_module
from pathlib import Path

os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
os.environ.setdefault("SDL_AUDIODRIVER", "dummy")
os.environ["PYGAME_HIDE_SUPPORT_PROMPT"] = "1"

import pygame

sys.path.insert(0, sys.argv[1])
blocks = import_module("blocks")

from clock import BlockClock, sized  # noqa: E402 - of that folder

LONG_S = blocks.LONG_S
OWN = {}
screen = None
ticker = pygame.time.Clock()


def own(block):
    OWN[block.__name__] = block
    return block


def frame(work=None, *args):
    """One frame of the game; `work` is what it does beside drawing."""
    for event in pygame.event.get():
        if event.type == pygame.QUIT:
            sys.exit("closed")
    if work is not None:
        work(*args)
    screen.fill((10, 20, 30))
    pygame.display.flip()


def prepared(block):
    """What the block needs to be made, before there are frames: making it takes long, too."""
    make = getattr(block, "prepare", None)
    return () if make is None else (make(),)


def in_a_frame(block, clock, *made):
    for _ in range(3):
        frame()
        ticker.tick(60)
    clock.before()
    frame(block, clock, *made)
    clock.after()


@own
def key_handler(clock):
    """A slow answer to a key."""
    pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=pygame.K_SPACE))
    clock.before()
    for event in pygame.event.get():
        if event.type == pygame.KEYDOWN:
            with clock:
                time.sleep(LONG_S)  # culprit
    pygame.display.flip()
    clock.after()


def scale(times):
    picture = pygame.Surface((256, 256), depth=32)
    for _ in range(times):
        pygame.transform.smoothscale(picture, (512, 512))  # culprit of scale


@own
@blocks.needs(lambda: sized(scale, 5, 2 * LONG_S))
def scaling(clock, times):
    """A picture that is scaled again and again."""
    frame()
    clock.before()
    pygame.event.pump()
    with clock:
        scale(times)
    pygame.display.flip()
    clock.after()


@own
def scene_of_a_frame(clock):
    """A scene that the program names."""
    import loopcanary

    with loopcanary.scene("dungeon"):
        frame()
        clock.before()
        pygame.event.pump()
        with clock:
            time.sleep(LONG_S)  # culprit
        pygame.display.flip()
        clock.after()
        frame()


def main(truth_file, wanted):
    global screen  # noqa: PLW0603 - a game
    gc.disable()
    todo = {name: OWN[name] if name in OWN else blocks.KINDS[name][1] for name in wanted}
    made = {name: prepared(block) for name, block in todo.items()}
    pygame.display.init()
    screen = pygame.display.set_mode((160, 120))
    truth = []
    for name, block in todo.items():
        clock = BlockClock(name)
        if name in OWN:
            frame()
            block(clock, *made[name])
        else:
            in_a_frame(block, clock, *made[name])
        truth.append(clock.facts)
    for _ in range(30):
        frame()
        ticker.tick(60)
    pygame.quit()
    truth_file.write_text(json.dumps(truth))


blocks.FOLDER = Path(sys.argv[3])
sys.path.append(sys.argv[3])
main(Path(sys.argv[2]), sys.argv[4:])
