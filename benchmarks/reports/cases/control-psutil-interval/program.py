"""A monitor on trio samples the load of the machine and of its own process with psutil."""

from __future__ import annotations

import time

import psutil
import trio


async def sample(send: trio.MemorySendChannel) -> None:
    own = psutil.Process()
    psutil.cpu_percent()
    own.cpu_percent()
    async with send:
        for _ in range(8):
            await trio.sleep(0.4)
            busy = psutil.cpu_percent(interval=None)
            mine = own.cpu_percent(interval=None)
            memory = psutil.virtual_memory().percent
            await send.send((busy, mine, memory))


async def show(receive: trio.MemoryReceiveChannel) -> None:
    async for busy, mine, memory in receive:
        print(f"machine {busy:5.1f} %  monitor {mine:5.1f} %  memory {memory:5.1f} %")


async def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await trio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


async def main() -> None:
    late: list[float] = []
    send, receive = trio.open_memory_channel(4)
    async with trio.open_nursery() as beats:
        beats.start_soon(heartbeat, late)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(sample, send)
            nursery.start_soon(show, receive)
        beats.cancel_scope.cancel()
    print(f"worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    trio.run(main)
