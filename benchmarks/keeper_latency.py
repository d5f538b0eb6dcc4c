"""How soon a keeper tells: a hang in C code that holds the GIL, and a program that was killed in one.

The program says when its hang begins, by the monotonic clock, which all processes share. The first figure is
from the hang's 1 s mark to its first line on the program's stderr; the second from SIGKILL until the stall is
in the store as killed. Each run has a store of its own, so that the keeper is started by the hang itself; on
a machine with other work to do the figures show that work, too.
"""

from __future__ import annotations

import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import closing, suppress
from pathlib import Path

from harness import table

RUNS = table.sized(7, 1)
PATIENCE_S = 10.0
RUN = (str(Path(sys.executable).with_name("loopcanary")), "run", "-c")
PROGRAM = """
import asyncio, ctypes, time

def hang():
    print(time.monotonic(), flush=True)
    ctypes.PyDLL(None).usleep(8_000_000)

async def main():
    await asyncio.sleep(0.05)
    asyncio.get_running_loop().call_soon(hang)
    await asyncio.sleep(0.05)

asyncio.run(main())
"""


def once(store: str) -> tuple[float, float]:
    """From the 1 s mark to the console, and from SIGKILL to the store, in seconds. TimeoutError."""
    environment = {**os.environ, "LOOPCANARY_KEEPER": "1", "LOOPCANARY_STORE": store}
    with subprocess.Popen(
        (*RUN, PROGRAM), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    ) as program:
        assert program.stdout is not None
        assert program.stderr is not None
        mark_s = float(program.stdout.readline()) + 1
        first = program.stderr.readline()
        seen_s = time.monotonic()
        # A keeper that is not there in time leaves the first word to the watchdog.
        if not first.startswith(b"[loopcanary] ") or seen_s > mark_s + PATIENCE_S:
            raise TimeoutError("the hang was not told while it lasted")
        program.kill()
        killed_s = time.monotonic()
        while not is_stored_as_killed(Path(store) / "loopcanary.db"):
            if time.monotonic() > killed_s + PATIENCE_S:
                raise TimeoutError("the killed program's stall is not in the store")
            time.sleep(0.002)
        return seen_s - mark_s, time.monotonic() - killed_s


def is_stored_as_killed(database: Path) -> bool:
    """Whether the one stall is there, and its end."""
    with (
        suppress(sqlite3.OperationalError),
        closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as store,
    ):
        return store.execute("SELECT 1 FROM issues WHERE state = 'killed'").fetchone() is not None
    return False


def measure() -> None:
    """Prints both figures beside their budgets: the median, and the slowest in the note."""
    found = []
    for _ in range(RUNS):
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            found.append(once(folder))
    load = f"load {os.getloadavg()[0]:.0f} on {os.cpu_count()} cores"
    for what, budget_s, values in (
        ("hang on the console after its 1 s mark", 0.3, [told for told, _ in found]),
        ("SIGKILL in a hang until it is stored", 1.0, [stored for _, stored in found]),
    ):
        note = f"slowest {max(values):.3f} s of {RUNS}; {load}"
        table.at_most(what, statistics.median(values), budget_s, unit="s", note=note)


if __name__ == "__main__":
    table.run(measure)
