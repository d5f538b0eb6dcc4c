"""A game that blocks under the portable engine, in a frame and not in its waits."""

from __future__ import annotations

import os

os.environ.update(SDL_VIDEODRIVER="dummy", SDL_AUDIODRIVER="dummy", PYGAME_HIDE_SUPPORT_PROMPT="1")

import pygame
from waiting import blocks

pygame.display.init()
screen = pygame.display.set_mode((160, 120))
clock = pygame.time.Clock()


def frame(work=None):
    pygame.event.get()
    if work is not None:
        work()
    screen.fill((10, 20, 30))
    pygame.display.flip()
    clock.tick(60)


for _ in range(5):
    frame()
frame(blocks)
pygame.time.wait(150)
frame()
pygame.quit()
