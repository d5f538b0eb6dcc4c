"""Reads a thermometer at a serial port that speaks every half second, and shows what it says."""

from __future__ import annotations

import os
import threading
import time

import serial
import trio


def play_thermometer(port: int) -> None:
    """The other end of the cable."""
    for number in range(6):
        time.sleep(0.5)
        os.write(port, f"{20 + number / 10:.1f} C\r\n".encode())


async def read_thermometer(port: serial.Serial) -> list[str]:
    thermometer = trio.wrap_file(port)
    readings = []
    for _ in range(6):
        line = await thermometer.readline()
        readings.append(line.decode().strip())
        print(f"it is {readings[-1]}")
    return readings


async def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await trio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


async def main(name: str) -> None:
    late: list[float] = []
    with serial.Serial(name, 9600, timeout=5) as port:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(heartbeat, late)
            print(f"{len(await read_thermometer(port))} readings")
            nursery.cancel_scope.cancel()
    print(f"{len(late)} ticks, worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    device, end = os.openpty()
    threading.Thread(target=play_thermometer, args=(device,), daemon=True).start()
    trio.run(main, os.ttyname(end))
