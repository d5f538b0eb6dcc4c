"""Keeps what the sensors of a house report over the network in a TinyDB."""

from __future__ import annotations

import functools
import pathlib
import tempfile
import time

import trio
from tinydb import TinyDB

SENSORS = 4
QUANTITIES = ("degrees", "humidity", "pressure", "co2", "dust", "noise", "light", "power", "battery", "signal")


def fill(database: TinyDB) -> None:
    """The readings of the last weeks."""
    database.insert_multiple(
        {"sensor": f"room {number % SENSORS}", "values": {name: number / 7 for name in QUANTITIES}}
        for number in range(12_000)
    )


async def keep_readings(database: TinyDB, stream: trio.SocketStream) -> None:
    buffer = b""
    async for piece in stream:
        *lines, buffer = (buffer + piece).split(b"\n")
        for line in lines:
            sensor, values = line.decode().split(": ")
            database.insert({"sensor": sensor, "values": dict(zip(QUANTITIES, map(float, values.split())))})


async def report(port: int, number: int) -> None:
    await trio.sleep(number / SENSORS)
    stream = await trio.open_tcp_stream("127.0.0.1", port)
    async with stream:
        for reading in range(3):
            values = " ".join(str(20 + reading / 10) for _ in QUANTITIES)
            await stream.send_all(f"room {number}: {values}\n".encode())
            await trio.sleep(1)


async def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await trio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


async def main(database: TinyDB) -> None:
    late: list[float] = []
    async with trio.open_nursery() as house:
        house.start_soon(heartbeat, late)
        serve = functools.partial(trio.serve_tcp, functools.partial(keep_readings, database), 0, host="127.0.0.1")
        listeners = await house.start(serve)
        port = listeners[0].socket.getsockname()[1]
        async with trio.open_nursery() as sensors:
            for number in range(SENSORS):
                sensors.start_soon(report, port, number)
        house.cancel_scope.cancel()
    print(f"{len(late)} ticks, worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        with TinyDB(pathlib.Path(folder, "readings.json")) as readings:
            fill(readings)
            trio.run(main, readings)
            print(f"{len(readings)} readings are kept")
