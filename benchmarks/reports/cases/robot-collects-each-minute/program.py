"""A field robot with a NiceGUI page: the automatic collector is off, garbage is collected at set times instead."""

from __future__ import annotations

import asyncio
import gc
import socket
import time
from dataclasses import dataclass, field

from nicegui import app, background_tasks, ui

COLLECT_EVERY = 1.5  # a minute on the real robot


@dataclass
class Spot:
    x: float
    y: float
    neighbours: list[Spot] = field(default_factory=list)
    tags: dict[str, str] = field(default_factory=dict)


class Field:
    """The map of the field: it stays for as long as the robot runs."""

    def __init__(self, rows: int, columns: int) -> None:
        self.rows = [[Spot(x * 0.1, y * 0.1, tags={"crop": "beet"}) for x in range(columns)] for y in range(rows)]
        for row in self.rows:
            for left, right in zip(row, row[1:]):
                left.neighbours.append(right)
                right.neighbours.append(left)


class Robot:
    def __init__(self) -> None:
        self.field = Field(1000, 700)
        self.late: list[float] = []
        self.row = 0

    async def drive(self) -> None:
        """The control loop: it has to reach the motors each 10 ms."""
        while True:
            began = time.perf_counter()
            await asyncio.sleep(0.01)
            self.late.append(time.perf_counter() - began - 0.01)

    async def look_for_plants(self) -> None:
        while True:
            await asyncio.sleep(0.1)
            row = self.field.rows[self.row % len(self.field.rows)]
            seen = [{"spot": spot, "near": list(spot.neighbours)} for spot in row[:50]]
            self.row += 1 if seen else 0

    async def collect_garbage(self) -> None:
        while True:
            await asyncio.sleep(COLLECT_EVERY)
            gc.collect()


gc.disable()  # the robot should not be held up while it drives
robot = Robot()


@ui.page("/")
def show_robot() -> None:
    ui.label().bind_text_from(robot, "row", lambda row: f"row {row}")


async def finish() -> None:
    await asyncio.sleep(4.8)
    print(f"{len(robot.late)} steps, {robot.row} rows, worst tick {max(robot.late) * 1000:.0f} ms", flush=True)
    app.shutdown()


async def start() -> None:
    await asyncio.sleep(0.5)
    for task in (robot.drive(), robot.look_for_plants(), robot.collect_garbage(), finish()):
        background_tasks.create(task)


app.on_startup(start)
with socket.create_server(("127.0.0.1", 0)) as free:
    port = free.getsockname()[1]
ui.run(host="127.0.0.1", port=port, show=False, reload=False, title="Field robot")
