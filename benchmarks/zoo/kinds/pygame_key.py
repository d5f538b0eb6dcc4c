"""The answer to a key blocks: a level is loaded in it."""

from __future__ import annotations

import time

import pygame
from zoo.loops import host
from zoo.stage import measured, pause, run

EXPECT = {"cause": ["sleep"], "loops": ["pygame"]}


def load_level():
    time.sleep(0.3)  # <- culprit


def on_event(event):
    if event.type == pygame.KEYDOWN:
        with measured():
            load_level()


async def handler():
    host().on_event = on_event
    pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=pygame.K_SPACE))
    await pause(0.05)


if __name__ == "__main__":
    run(handler)
