"""Control: callbacks of half the threshold."""

from __future__ import annotations

import time

from zoo.stage import pause, run

EXPECT = {"control": True, "loops": "all"}


async def handler():
    for _ in range(8):
        time.sleep(0.05)
        await pause(0.02)


if __name__ == "__main__":
    run(handler)
