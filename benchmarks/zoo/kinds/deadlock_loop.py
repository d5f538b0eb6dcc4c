"""A handler waits for a lock whose holder waits for the handler's loop; killed in the deadlock."""

from __future__ import annotations

import asyncio
import threading

from zoo.stage import measured, run

EXPECT = {
    "cause": ["lock"],
    "thread": ["importer"],
    "loops": ["asyncio"],
    "killed": True,
    "advice": ["result"],
}
rows = threading.Lock()
taken = threading.Event()


async def publish():
    pass


def store(loop):
    with rows:
        taken.set()
        asyncio.run_coroutine_threadsafe(publish(), loop).result()  # <- holder


def count():
    with rows:  # <- culprit
        pass


async def handler():
    with measured():
        loop = asyncio.get_running_loop()
        threading.Thread(target=store, name="importer", args=(loop,), daemon=True).start()
        taken.wait()
        count()


if __name__ == "__main__":
    run(handler)
