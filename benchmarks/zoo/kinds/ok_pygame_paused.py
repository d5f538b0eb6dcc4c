"""Control: a paused game waits for a key, for two seconds."""

from __future__ import annotations

import threading

import pygame
from zoo.stage import run

EXPECT = {"control": True, "loops": ["pygame"]}


def press_key():
    pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=pygame.K_SPACE))


async def handler():
    threading.Timer(2, press_key).start()
    while pygame.event.wait().type != pygame.KEYDOWN:
        pass


if __name__ == "__main__":
    run(handler)
