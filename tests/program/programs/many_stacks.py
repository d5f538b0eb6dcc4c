"""One stall that does many things, each at another stack, and then one thing for most of its time."""

from __future__ import annotations

import asyncio
import random
import time

FUNCTIONS = 200
BUSY_S, STUCK_S = 0.6, 1.4


def functions():
    """Each of a code of its own, which calls others, on the way to a depth that is given."""
    namespace: dict = {}
    for number in range(FUNCTIONS):
        source = f"""
def f{number}(depth):
    sum(range(1000))
    if depth:
        every["f" + str(({number} * 7 + depth * 13) % {FUNCTIONS})](depth - 1)
"""
        exec(source, namespace)
    namespace["every"] = namespace
    return [namespace[f"f{number}"] for number in range(FUNCTIONS)]


def handle(every):
    chosen, until = random.Random(1), time.monotonic() + BUSY_S
    while time.monotonic() < until:
        chosen.choice(every)(40)
    time.sleep(STUCK_S)  # culprit


async def main(every):
    await asyncio.sleep(0)
    handle(every)


asyncio.run(main(functions()))
