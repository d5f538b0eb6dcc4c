"""Control: many small files written, read and removed."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from zoo.stage import run

EXPECT = {"control": True}


async def handler():
    with tempfile.TemporaryDirectory() as folder:
        for number in range(100):
            path = Path(folder, str(number))
            path.write_text("text")
            path.read_text()
            path.unlink()
            await asyncio.sleep(0.002)


if __name__ == "__main__":
    run(handler)
