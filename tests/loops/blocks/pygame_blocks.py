"""A game whose frames block. There is no variant of it."""

from __future__ import annotations

import os
import sys
import time

os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
os.environ.setdefault("SDL_AUDIODRIVER", "dummy")
os.environ["PYGAME_HIDE_SUPPORT_PROMPT"] = "1"

import pygame
from driving import LONG_S, blocks, drive, own

ticker = pygame.time.Clock()
due = []


def later(function, milliseconds=0):
    due.append(function)


def frame(work=lambda: None):
    """One frame of the game; `work` is what it does beside drawing."""
    for event in pygame.event.get():
        if event.type == pygame.QUIT:
            sys.exit("closed")
    work()
    pygame.display.get_surface().fill((10, 20, 30))
    pygame.display.flip()


def do_what_is_due():
    now = due[:]
    due.clear()
    for function in now:
        function()


@own
def key_handler(clock):
    """A slow answer to a key."""
    frame()
    pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=pygame.K_SPACE))
    clock.before()
    for event in pygame.event.get():
        if event.type == pygame.KEYDOWN:
            with clock:
                time.sleep(LONG_S)  # culprit of key_handler
    pygame.display.flip()
    drive.arrived(clock)
    yield


def scale(times):
    picture = pygame.Surface((256, 256), depth=32)
    for _ in range(times):  # culprit of scaling
        pygame.transform.smoothscale(picture, (512, 512))


@own
@blocks.needs(lambda: blocks.sized(scale, 5, 2 * LONG_S))
def scaling(clock, times):
    """A picture that is scaled again and again."""
    frame()
    clock.before()
    pygame.event.pump()
    with clock:
        scale(times)
    pygame.display.flip()
    drive.arrived(clock)
    yield


@own
def scene_of_a_frame(clock):
    """A scene that the program names."""
    import loopcanary

    with loopcanary.scene("dungeon"):
        frame()
        clock.before()
        pygame.event.pump()
        with clock:
            time.sleep(LONG_S)  # culprit of scene_of_a_frame
        pygame.display.flip()
        clock.after()
        frame()
    drive.go_on()
    yield


def run():
    pygame.display.init()
    pygame.display.set_mode((160, 120))
    while not over:
        frame(do_what_is_due)
        ticker.tick(60)
    for _ in range(30):
        frame()
        ticker.tick(60)
    pygame.quit()


if __name__ == "__main__":
    over = []
    drive.later = later
    drive.main(run, lambda: over.append(True))
