"""The levels, and the sky behind them: a file of compressed JSON, read, unpacked and decoded when a level
begins, though the sky is always the same and nobody looks at it."""

from __future__ import annotations

import json
import random
import tempfile
import zlib
from pathlib import Path

FOLDER = Path(tempfile.gettempdir()) / "stuttering-asteroids"
SKY = FOLDER / "sky.map"


class Rock:
    def __init__(self, x, y, size, is_big):
        self.x, self.y, self.size, self.is_big = x, y, size, is_big
        self.dx, self.dy = random.uniform(-2, 2), random.uniform(-2, 2)

    def move(self, size):
        self.x, self.y = (self.x + self.dx) % size[0], (self.y + self.dy) % size[1]


def draw_sky():
    """Once, before the game begins."""
    if not SKY.exists():
        FOLDER.mkdir(exist_ok=True)
        SKY.write_bytes(zlib.compress(json.dumps(list(random.randbytes(3_000_000))).encode(), 1))


def load(level, size):
    stars = json.loads(zlib.decompress(SKY.read_bytes()))
    rocks = range(3 + level)
    return [
        Rock(stars[2 * n] * size[0] / 255, stars[2 * n + 1] * size[1] / 255, (14, 20, 32)[n % 3], n % 3 == 0)
        for n in rocks
    ]
