"""What loopcanary adds to a program's start and to its memory.

Times are CPU times, the medians of fresh processes started in turns: wall time would measure the machine's
other work. Memory is what /proc/self/smaps_rollup gives
after asyncio has run a loop, in KiB of resident (RSS), proportional (PSS) and own (USS) pages, as the
difference from a program that does the same without loopcanary.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from harness import table
from harness.children import PROGRAM_CPU, alternate

STARTS = 20
STALLS = 100

IMPORT = """
import time
begin = time.process_time()
import loopcanary
print(time.process_time() - begin)
"""
INSTALL = """
import asyncio, time
begin = time.process_time()
import loopcanary
loopcanary.install(quiet=True)
print(time.process_time() - begin)
"""
ARM = """
import asyncio, time
begin = time.process_time()
import loopcanary
loopcanary.install(_from_startup=True)
print(time.process_time() - begin)
"""
MEMORY = """
import asyncio, gc, sys, time
how, stalls = sys.argv[1], int(sys.argv[2])
if how in ("armed", "watched"):
    import loopcanary
    canary = loopcanary.install(quiet=True, _from_startup=how == "armed")

async def main():
    for _ in range(stalls):
        await asyncio.sleep(0)
        time.sleep(0.101)
    await asyncio.sleep(0.5)
    if how == "watched":
        while len(canary.stalls) < stalls:
            await asyncio.sleep(0.1)

if how not in ("armed", "idle"):
    asyncio.run(main())
gc.collect()
pages = dict(line.split()[:2] for line in open("/proc/self/smaps_rollup").readlines()[1:])
print(pages["Rss:"], pages["Pss:"], int(pages["Private_Clean:"]) + int(pages["Private_Dirty:"]))
"""


def output(*arguments: str, folder: Path | None = None, **settings: str) -> str:
    """What a fresh interpreter prints."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LOOPCANARY")}
    command = ["taskset", "-c", str(PROGRAM_CPU), sys.executable, *arguments]
    done = subprocess.run(
        command, env={**kept, **settings}, cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout


def median_ms(source: str) -> float:
    """The median of the seconds that fresh processes print, in milliseconds."""
    figures = []
    for _ in range(STARTS):
        with tempfile.TemporaryDirectory() as folder:
            figures.append(float(output("-c", source, folder=Path(folder))) * 1000)
    return statistics.median(figures)


def start_ms(switch: str) -> float:
    """What a process without a loop costs, in milliseconds."""
    begin = children_cpu_s()
    output("-c", "pass", LOOPCANARY=switch)
    return (children_cpu_s() - begin) * 1000


def children_cpu_s() -> float:
    """CPU time of the children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def memory(how: str, stalls: int) -> list[int]:
    """RSS, PSS and USS in KiB, each the median of three processes."""
    figures = []
    for _ in range(3 if stalls == 0 else 1):
        with tempfile.TemporaryDirectory() as folder:
            words = output("-c", MEMORY, how, str(stalls), folder=Path(folder)).split()
            figures.append([int(word) for word in words])
    return [int(statistics.median(column)) for column in zip(*figures, strict=True)]


def measure() -> None:
    """Prints times of import, install and start, and the memory added."""
    table.at_most("import loopcanary", median_ms(IMPORT), 20, unit="ms")
    table.told("import and install, asyncio loaded", f"{median_ms(INSTALL):.3g} ms")
    table.told("child that imports asyncio and runs no loop", f"{median_ms(ARM):.3g} ms")
    starts = alternate(lambda: start_ms("1"), lambda: start_ms("0"), STARTS)
    added = statistics.median(watched - plain for watched, plain in starts)
    plain = statistics.median(plain for _, plain in starts)
    table.told("python -c pass, LOOPCANARY=1 against 0", f"+{added:.3g} ms", note=f"{plain:.3g} ms without")
    idle, plain_loop = memory("idle", 0), memory("plain", 0)
    for how, stalls, when, without in (
        ("armed", 0, "in a child that runs no loop", idle),
        ("watched", 0, "after a loop has run", plain_loop),
        ("watched", STALLS, f"after {STALLS} stalls", plain_loop),
    ):
        pairs = zip(memory(how, stalls), without, strict=True)
        rss, pss, uss = ((own - other) / 1024 for own, other in pairs)
        note = f"PSS {pss:.1f}, USS {uss:.1f} MiB"
        table.at_most(f"memory added, {when}, RSS", rss, 10, unit="MiB", note=note)


if __name__ == "__main__":
    table.run(measure)
