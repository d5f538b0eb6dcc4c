"""A notebook makes the nodes of a simulation and shows them, while a task of the kernel's loop beats."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time

profile = tempfile.TemporaryDirectory(prefix="ipython-")
os.environ["IPYTHONDIR"] = profile.name

from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

CELLS = [
    "nodes = create('parrot_neuron', 40_000)",
    "nodes[:3].tau_m",
    "nodes",
]


class Simulator:
    def __init__(self) -> None:
        self.defaults = {"tau_m": 10.0, "V_th": -55.0, "V_reset": -70.0, "C_m": 250.0, "t_ref": 2.0, "I_e": 0.0, "model": ""}
        self.changed: list[dict[str, object]] = []

    def get_status(self, node: int) -> dict[str, object]:
        changed = self.changed[node]
        return {name: changed.get(name, value) for name, value in self.defaults.items()}


SIMULATOR = Simulator()


class NodeCollection:
    def __init__(self, model: str, nodes: range) -> None:
        self.model = model
        self.nodes = nodes

    def __getitem__(self, part: slice) -> NodeCollection:
        return NodeCollection(self.model, self.nodes[part])

    def get(self, name: str) -> list[object]:
        found = [SIMULATOR.get_status(node).get(name) for node in self.nodes]
        if None in found:
            raise KeyError(name)
        return found

    def __getattr__(self, name: str) -> list[object]:
        try:
            return self.get(name)
        except KeyError:
            raise AttributeError(f"nodes have no {name}") from None

    def __repr__(self) -> str:
        return f"NodeCollection(model={self.model}, size={len(self.nodes)}, first={self.nodes[0] + 1})"


def create(model: str, count: int) -> NodeCollection:
    first = len(SIMULATOR.changed)
    SIMULATOR.changed.extend({"model": model} for _ in range(count))
    return NodeCollection(model, range(first, first + count))


async def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


async def main() -> None:
    shell = InteractiveShell.instance(config=Config(HistoryManager={"enabled": False}))
    shell.user_ns["create"] = create
    await shell.run_cell_async("1", store_history=True, transformed_cell="1")
    late: list[float] = []
    beats = asyncio.create_task(heartbeat(late))
    for cell in CELLS:
        await asyncio.sleep(1)
        result = await shell.run_cell_async(cell, store_history=True, transformed_cell=shell.transform_cell(cell))
        result.raise_error()
    await asyncio.sleep(1)
    beats.cancel()
    print(f"worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    asyncio.run(main())
