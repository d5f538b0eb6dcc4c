"""Turns of a loop that two lines block; see test_gain.py. Says by how many seconds its end was late."""

from __future__ import annotations

import asyncio
import sys
import time

TURNS, PAUSE_S = 3, 0.05
meant_s: list[float] = []


def meant(seconds: float) -> float:
    meant_s.append(seconds)
    return seconds


def turn() -> None:
    time.sleep(meant(0.3))  # culprit
    time.sleep(meant(0.2))


async def main() -> None:
    began_s = time.perf_counter()
    for _ in range(TURNS):
        await asyncio.sleep(meant(PAUSE_S))
        turn()
    sys.stdout.write(f"{time.perf_counter() - began_s - sum(meant_s)}\n")


asyncio.run(main())
