"""A frame moves far too many particles, in pure Python."""

from __future__ import annotations

from zoo.stage import measured, run, sized

EXPECT = {"cause": ["cpu"], "loops": ["pygame"]}


class Particle:
    def __init__(self):
        self.x, self.speed = 0.0, 1.5


def move(particles):
    for particle in particles:  # <- culprit
        particle.x += particle.speed  # <- culprit


CLOUD = [Particle()] * sized(lambda count: move([Particle()] * count), 0.3)


async def handler():
    with measured():
        move(CLOUD)


if __name__ == "__main__":
    run(handler)
