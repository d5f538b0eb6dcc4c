"""The task that takes from a channel computes; others wait for their turn."""

from __future__ import annotations

import trio
from zoo.stage import measured, run, sized

EXPECT = {"cause": ["cpu"], "loops": ["trio"]}


def summarize(count):
    total = 0
    for number in range(count):  # <- culprit
        total += number % 3  # <- culprit
    return total


ENOUGH = sized(summarize, 0.3)


async def consume(orders):
    async for count in orders:
        with measured():
            summarize(count)


async def tick(scope):
    with scope:
        while True:
            await trio.sleep(0.01)


async def handler():
    scope = trio.CancelScope()
    sending, receiving = trio.open_memory_channel(1)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(tick, scope)
        nursery.start_soon(consume, receiving)
        async with sending:
            await sending.send(ENOUGH)
        await trio.sleep(0.02)
        scope.cancel()


if __name__ == "__main__":
    run(handler)
