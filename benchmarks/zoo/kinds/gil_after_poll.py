"""A thread's C call keeps the GIL while the loop wakes up: no callback runs, none is to blame."""

from __future__ import annotations

import asyncio
import threading
import time

from zoo import stage

# When the timer is due is known, not when the kernel woke the thread for it.
EXPECT = {"cause": ["gil"], "about": True, "thread": ["aggregator"]}
ENOUGH = stage.sized(lambda count: sum(range(count)), 0.4, start=100_000)
go = threading.Event()


def aggregate():
    go.wait()
    sum(range(ENOUGH))  # <- holder


async def handler():
    loop = asyncio.get_running_loop()
    due, late = loop.time() + 0.05, loop.create_future()
    # Stalled is the loop from when it should wake up to when it can.
    loop.call_at(due, lambda: late.set_result(time.monotonic_ns()))
    stage.begin(int(due * 1e9))
    go.set()
    stage.end(await late)


if __name__ == "__main__":
    threading.Thread(target=aggregate, name="aggregator").start()
    stage.run(handler)
