"""A notebook with a task in the background: it goes on between the cells, and while they wait."""

from __future__ import annotations

import time

from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

START = """
import asyncio, sys, time

late = []

async def heartbeat():
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)

beats = asyncio.ensure_future(heartbeat())
"""

ASK_SENSOR = """
def ask_sensor(number):
    time.sleep(0.6)  # a library that knows only this
    return number * 1.5

values = await asyncio.gather(*(asyncio.to_thread(ask_sensor, number) for number in range(3)))
print(values)
"""

RUN_CHILD = """
child = await asyncio.create_subprocess_exec(sys.executable, "-c", "import time; time.sleep(0.8)")
print("exit code", await child.wait())
"""

WAIT_FOR_CLICK = """
clicked = asyncio.Event()
asyncio.get_running_loop().call_later(0.7, clicked.set)
await clicked.wait()
print("clicked")
"""

END = """
beats.cancel()
print(f"{len(late)} ticks, worst tick {max(late) * 1000:.0f} ms")
"""


class SlowReader(NotebookClient):
    """Runs the cells as a person would: with a while between them."""

    async def async_execute_cell(self, cell, cell_index, **kwargs):
        done = await super().async_execute_cell(cell, cell_index, **kwargs)
        for output in cell.outputs:
            print(output.get("text", "").strip(), flush=True)
        time.sleep(0.5)  # in this process, not in the kernel's
        return done


def main() -> None:
    cells = [new_code_cell(source) for source in (START, ASK_SENSOR, RUN_CHILD, WAIT_FOR_CLICK, END)]
    metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    SlowReader(new_notebook(cells=cells, metadata=metadata), timeout=30).execute()


if __name__ == "__main__":
    main()
