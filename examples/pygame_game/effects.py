"""Explosions: drawn, then blurred pixel by pixel, in the frame in which the rock breaks."""

from __future__ import annotations

import pygame


def explosion(size):
    picture = pygame.Surface((80, 80), pygame.SRCALPHA)
    for radius, colour in ((size + 8, "darkred"), (size, "orange"), (size // 2, "white")):
        pygame.draw.circle(picture, colour, (40, 40), radius)
    return blurred(picture)


def blurred(picture):
    width, height = picture.get_size()
    result = picture.copy()
    for y in range(2, height - 2):
        for x in range(2, width - 2):
            total = [0, 0, 0, 0]
            for dy in (-2, 0, 2):
                for dx in (-2, 0, 2):
                    for index, part in enumerate(picture.get_at((x + dx, y + dy))):
                        total[index] += part
            result.set_at((x, y), [part // 9 for part in total])
    return result
