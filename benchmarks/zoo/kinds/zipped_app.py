"""A program in a zip archive, as zipapp makes them, sorts a long list: this file, packed."""

from __future__ import annotations

import os
import random
import sys
import tempfile
import zipfile
from pathlib import Path

from zoo.stage import measured, run, sized

EXPECT = {"cause": ["native-cpu"], "loops": "all"}


def numbers(count):
    return [random.random() for _ in range(count)]


def rank(prices):
    return sorted(prices)  # <- culprit


async def handler():
    import zipped_app

    with measured():
        zipped_app.rank(PRICES)


if __name__ == "__main__":
    PRICES = numbers(sized(lambda count: sorted(numbers(count)), 0.6, start=100_000))
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        archive = Path(folder, "app.pyz")
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
            packed.write(__file__, "zipped_app.py")
        os.utime(archive, (0, 0))  # it was there before the program began
        sys.path.insert(0, str(archive))
        run(handler)
