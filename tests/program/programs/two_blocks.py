"""Turns of a loop that two lines block; see test_gain.py. Says how long it ran, and each turn's two parts."""

from __future__ import annotations

import asyncio
import json
import sys
import time

TURNS, PAUSE_S = 2, 0.05
turns: list[tuple[float, float]] = []


def turn() -> None:
    began_s = time.perf_counter()
    time.sleep(1.5)  # culprit
    between_s = time.perf_counter()
    time.sleep(1.0)
    turns.append((between_s - began_s, time.perf_counter() - between_s))


async def main() -> None:
    began_s = time.perf_counter()
    for _ in range(TURNS):
        await asyncio.sleep(PAUSE_S)
        turn()
    json.dump({"window_s": time.perf_counter() - began_s, "turns": turns}, sys.stdout)


asyncio.run(main())
