"""Maps of the levels, as JSON in compressed files: read, unpacked and decoded when the level begins."""

from __future__ import annotations

import json
import random
import tempfile
import zlib
from pathlib import Path

FOLDER = Path(tempfile.gettempdir()) / "stuttering-asteroids"


class Rock:
    def __init__(self, x, y, size, is_big):
        self.x, self.y, self.size, self.is_big = x, y, size, is_big
        self.dx, self.dy = random.uniform(-2, 2), random.uniform(-2, 2)

    def move(self, size):
        self.x, self.y = (self.x + self.dx) % size[0], (self.y + self.dy) % size[1]


def load(level, size):
    """The rocks of a level. The map has every star behind them as well, and nobody looks at the stars."""
    path = FOLDER / f"level{level}.map"
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(drawn(level, size))
    world = json.loads(zlib.decompress(path.read_bytes()))
    return [Rock(**rock) for rock in world["rocks"]]


def drawn(level, size):
    rocks = [
        {
            "x": random.uniform(0, size[0]),
            "y": random.uniform(0, size[1]),
            "size": random.choice([14, 20, 32]),
            "is_big": number % 3 == 0,
        }
        for number in range(3 + level)
    ]
    stars = [[random.random(), random.random(), random.random()] for _ in range(150_000)]
    return zlib.compress(json.dumps({"rocks": rocks, "stars": stars}).encode())
