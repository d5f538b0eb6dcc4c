"""Control: a loading screen, which looks for events between pieces of work and draws nothing new."""

from __future__ import annotations

import time

import pygame
from zoo.stage import run

EXPECT = {"control": True, "loops": ["pygame"]}


async def handler():
    for _ in range(50):
        time.sleep(0.03)
        pygame.event.pump()


if __name__ == "__main__":
    run(handler)
