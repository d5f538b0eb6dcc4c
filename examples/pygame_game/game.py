"""Asteroids that stutter: a small game whose frames come late in ways that games know.

    pip install pygame-ce
    loopcanary run examples/pygame_game/game.py
        arrows turn and push, space shoots, s saves
    loopcanary run examples/pygame_game/game.py --autoplay 20
        no window and no keys: it plays by itself for 20 s
    loopcanary report

What is wrong with it: a new level reads and decodes the sky in the middle of a frame (levels.py), the
picture of an explosion is blurred pixel by pixel (effects.py), saving syncs each line to the disk
(saves.py), and the high scores come over the network from a server that takes its time (scores.py).
"""

from __future__ import annotations

import argparse
import math
import os
import random

parser = argparse.ArgumentParser()
parser.add_argument(
    "--autoplay", type=float, metavar="SECONDS", help="no window and no keys: plays by itself"
)
options = parser.parse_args()
if options.autoplay:
    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
    os.environ.setdefault("SDL_AUDIODRIVER", "dummy")

import effects  # noqa: E402
import levels  # noqa: E402
import pygame  # noqa: E402 - after its settings
import saves  # noqa: E402
import scores  # noqa: E402

import loopcanary  # noqa: E402

SIZE = 640, 400
FRAMES_PER_SECOND = 60
KEYS = (pygame.K_LEFT, pygame.K_RIGHT, pygame.K_UP, pygame.K_SPACE)


class Ship:
    def __init__(self):
        self.x, self.y, self.angle, self.speed = SIZE[0] / 2, SIZE[1] / 2, 0.0, 0.0

    def move(self, held):
        self.angle += 4 * (held[pygame.K_RIGHT] - held[pygame.K_LEFT])
        self.speed = min(6.0, self.speed * 0.98 + 0.2 * held[pygame.K_UP])
        self.x = (self.x + self.speed * math.sin(math.radians(self.angle))) % SIZE[0]
        self.y = (self.y - self.speed * math.cos(math.radians(self.angle))) % SIZE[1]

    def draw(self, screen):
        points = [(0, -12), (8, 10), (-8, 10)]
        sin, cos = math.sin(math.radians(self.angle)), math.cos(math.radians(self.angle))
        pygame.draw.polygon(
            screen, "white", [(self.x + x * cos - y * sin, self.y + x * sin + y * cos) for x, y in points], 2
        )


class Game:
    def __init__(self):
        pygame.display.init()
        pygame.display.set_caption("Asteroids that stutter")
        self.screen = pygame.display.set_mode(SIZE)
        self.clock = pygame.time.Clock()
        self.ship = Ship()
        self.shots, self.blasts = [], []
        self.level, self.rocks, self.points = 0, [], 0
        self.frames = 0
        self.is_over = False

    def play(self):
        with loopcanary.scene("title"):
            self.title()
        while not self.is_over:
            self.level += 1
            with loopcanary.scene(f"level {self.level}"):
                self.rocks = levels.load(self.level, SIZE)
                while self.rocks and not self.is_over:
                    self.frame()
        with loopcanary.scene("high scores"):
            scores.show(self.points)
            self.draw()
        pygame.quit()

    def title(self):
        for _ in range(FRAMES_PER_SECOND):
            self.screen.fill("black")
            pygame.draw.circle(self.screen, "gray", (320, 200), 90 + self.frames % 30, 3)
            self.show()
            pygame.event.pump()

    def frame(self):
        for event in pygame.event.get():
            self.react(event)
        held = pygame.key.get_pressed() if not options.autoplay else self.own_keys()
        self.ship.move(held)
        for rock in self.rocks:
            rock.move(SIZE)
        for shot in self.shots:
            shot[0] += shot[2]
            shot[1] += shot[3]
        self.shots = [shot for shot in self.shots if 0 < shot[0] < SIZE[0] and 0 < shot[1] < SIZE[1]]
        self.hit()
        self.draw()

    def react(self, event):
        if event.type == pygame.QUIT:
            self.is_over = True
        elif event.type == pygame.KEYDOWN and event.key == pygame.K_SPACE:
            angle = math.radians(self.ship.angle)
            self.shots.append([self.ship.x, self.ship.y, 9 * math.sin(angle), -9 * math.cos(angle)])
        elif event.type == pygame.KEYDOWN and event.key == pygame.K_s:
            saves.save(self)

    def own_keys(self):
        """Plays: turns, pushes, shoots, saves now and then; ends when its time is over."""
        if self.frames % 8 == 0:
            pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=pygame.K_SPACE))
        if self.frames % 300 == 299:
            pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=pygame.K_s))
        if pygame.time.get_ticks() > 1_000 * options.autoplay:
            self.is_over = True
        return {key: key == pygame.K_RIGHT or self.frames % 3 == 0 for key in KEYS}

    def hit(self):
        for shot in list(self.shots):
            for rock in list(self.rocks):
                if math.hypot(shot[0] - rock.x, shot[1] - rock.y) < rock.size:
                    self.rocks.remove(rock)
                    self.shots.remove(shot)
                    self.points += 100
                    if rock.is_big:
                        self.blasts.append([effects.explosion(rock.size), rock.x, rock.y, 30])
                    break

    def draw(self):
        self.screen.fill("black")
        for rock in self.rocks:
            pygame.draw.circle(self.screen, "gray", (rock.x, rock.y), rock.size, 2)
        for blast in self.blasts:
            blast[3] -= 1
            self.screen.blit(blast[0], (blast[1] - 40, blast[2] - 40))
        self.blasts = [blast for blast in self.blasts if blast[3] > 0]
        for x, y, *_ in self.shots:
            pygame.draw.circle(self.screen, "yellow", (x, y), 3)
        self.ship.draw(self.screen)
        self.show()

    def show(self):
        pygame.display.flip()
        self.clock.tick(FRAMES_PER_SECOND)
        self.frames += 1


if __name__ == "__main__":
    random.seed(7)
    levels.draw_sky()
    Game().play()
