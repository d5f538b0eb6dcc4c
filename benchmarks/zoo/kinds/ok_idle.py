"""Control: an idle loop."""

from __future__ import annotations

from zoo.stage import pause, run

EXPECT = {"control": True, "loops": "all"}


async def handler():
    await pause(1)


if __name__ == "__main__":
    run(handler)
