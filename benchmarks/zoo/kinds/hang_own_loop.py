"""A handler waits for work that only its own loop could do; killed in the deadlock."""

from __future__ import annotations

import asyncio

from zoo.stage import measured, run

EXPECT = {"cause": ["lock"], "killed": True}


async def load():
    await asyncio.sleep(0)


def load_now(loop):
    return asyncio.run_coroutine_threadsafe(load(), loop).result()  # <- culprit


async def handler():
    with measured():
        load_now(asyncio.get_running_loop())


if __name__ == "__main__":
    run(handler)
