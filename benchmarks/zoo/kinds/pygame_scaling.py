"""A frame scales a picture again and again."""

from __future__ import annotations

import pygame
from zoo.stage import measured, run, sized

EXPECT = {"cause": ["native-cpu"], "loops": ["pygame"]}
PICTURE = pygame.Surface((256, 256), depth=32)


def zoom(times):
    for _ in range(times):
        pygame.transform.smoothscale(PICTURE, (512, 512))  # <- culprit


TIMES = sized(zoom, 0.3, start=5)


async def handler():
    with measured():
        zoom(TIMES)


if __name__ == "__main__":
    run(handler)
