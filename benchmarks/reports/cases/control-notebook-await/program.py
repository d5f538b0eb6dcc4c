"""A notebook's cell takes three seconds, but awaits its work, so that a background task of the kernel goes on."""

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
    "import asyncio, hashlib, time",
    """\
def time_consuming_function():
    digest = hashlib.sha256()
    block = bytes(1 << 20)
    until = time.monotonic() + 1
    while time.monotonic() < until:
        digest.update(block)
    time.sleep(2)
    return digest.hexdigest()[:8]
""",
    "answer = await asyncio.to_thread(time_consuming_function)",
    "len(answer)",
]


async def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


async def main() -> None:
    shell = InteractiveShell.instance(config=Config(HistoryManager={"enabled": False}))
    await shell.run_cell_async("1", store_history=True, transformed_cell="1")
    late: list[float] = []
    beats = asyncio.create_task(heartbeat(late))
    for cell in CELLS:
        await asyncio.sleep(0.5)
        began = time.perf_counter()
        result = await shell.run_cell_async(cell, store_history=True, transformed_cell=shell.transform_cell(cell))
        result.raise_error()
        print(f"cell {shell.execution_count - 1}: {time.perf_counter() - began:.1f} s")
    await asyncio.sleep(0.5)
    beats.cancel()
    print(f"worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    asyncio.run(main())
