"""A game loads the picture of a wall from its file for each wall of each frame."""

from __future__ import annotations

import os
import tempfile
import time

os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")

import pygame

COLUMNS, ROWS, TILE = 48, 36, 20
HEIGHT = 60  # a wall is higher than its tile


class Level:
    def __init__(self, screen: pygame.Surface, picture: str) -> None:
        self.screen = screen
        self.picture = picture
        self.walls = [[(row * column) % 3 != 1 for column in range(COLUMNS)] for row in range(ROWS)]

    def draw(self) -> None:
        self.screen.fill("black")
        for row in range(ROWS):
            for column in range(COLUMNS):
                if self.walls[row][column]:
                    wall = pygame.image.load(self.picture)
                    self.screen.blit(wall, (column * TILE, row * TILE))


def paint_wall(picture: str) -> None:
    wall = pygame.Surface((TILE, HEIGHT))
    for x in range(TILE):
        for y in range(HEIGHT):
            wall.set_at((x, y), (x * x * y % 256, x * y * 7 % 256, (x + 3) ** y % 256))
    pygame.image.save(wall, picture)


def main(picture: str) -> None:
    pygame.display.init()
    screen = pygame.display.set_mode((COLUMNS * TILE, ROWS * TILE))
    paint_wall(picture)
    level = Level(screen, picture)
    clock = pygame.time.Clock()
    frames: list[float] = []
    until = time.monotonic() + 6
    while time.monotonic() < until:
        began = time.perf_counter()
        for event in pygame.event.get():
            if event.type == pygame.QUIT:
                return
        level.draw()
        pygame.display.flip()
        frames.append(time.perf_counter() - began)
        clock.tick(30)
    pygame.quit()
    frames.sort()
    usual, worst = frames[len(frames) // 2] * 1000, frames[-1] * 1000
    print(f"{len(frames)} frames, half above {usual:.0f} ms, worst {worst:.0f} ms")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(os.path.join(folder, "wall.png"))
