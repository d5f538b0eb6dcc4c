"""What loopcanary adds to a program's start, to its modules and its memory: with a keeper, and for comparison
with the engine in the program.

Times are CPU times, the medians of fresh processes started in turns: wall time would measure the machine's
other work. Memory is what /proc/self/smaps_rollup gives after asyncio has run a loop, in KiB of resident
(RSS), proportional (PSS) and own (USS) pages, the smallest of some processes, as the difference from a
program that does the same without loopcanary.
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

STARTS = table.sized(20, 1)
STALLS = table.sized(100, 2)
PROCESSES = table.sized(7, 1)
KEPT, IN_PROCESS = {"LOOPCANARY_KEEPER": "1"}, {"LOOPCANARY_KEEPER": "0"}
FIRST_LOOP_MS = 15
TOML_MS = 8
MODULES = 15
MEMORY_MIB = 2.5
TOML = "[tool.loopcanary]\nthreshold = '80ms'\nignore = ['vendor']\n"

IMPORT = """
import time
begin = time.process_time()
import loopcanary
print(time.process_time() - begin)
"""
FIRST_LOOP = """
import asyncio, sys, time
async def main():
    await asyncio.sleep(0)
begin = time.process_time()
if sys.argv[1] == "watched":
    import loopcanary
    canary = loopcanary.install(console="off")
asyncio.run(main())
if sys.argv[1] == "watched" and canary.kept is None:
    canary.stalls  # waits until the drain has loaded the diagnosis
print(time.process_time() - begin, sum(name.partition(".")[0] == "loopcanary" for name in sys.modules))
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
    canary = loopcanary.install(console="off", _from_startup=how == "armed")

async def main():
    for _ in range(stalls):
        await asyncio.sleep(0)
        time.sleep(0.101)
    await asyncio.sleep(0.5)
    if how == "watched" and canary.kept is None:
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
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # a keeper may write still
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


def first_loop(way: dict[str, str], toml: str = "") -> tuple[float, int]:
    """What install() and a first loop take more than the loop, in milliseconds; how many modules are ours."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # a keeper may write still
        if toml:
            Path(folder, "pyproject.toml").write_text(toml, encoding="utf-8")

        def ms(how: str) -> float:
            nonlocal modules
            seconds, count = output("-c", FIRST_LOOP, how, folder=Path(folder), **way).split()
            modules = max(modules, int(count))
            return float(seconds) * 1000

        modules = 0
        pairs = alternate(lambda: ms("watched"), lambda: ms("plain"), STARTS)
    return statistics.median(watched - plain for watched, plain in pairs), modules


def memory(how: str, stalls: int, way: dict[str, str]) -> list[int]:
    """RSS, PSS and USS in KiB, each the smallest of some processes."""
    figures = []
    for _ in range(PROCESSES if stalls == 0 else 3):
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # a keeper may write still
            words = output("-c", MEMORY, how, str(stalls), folder=Path(folder), **way).split()
            figures.append([int(word) for word in words])
    return [min(column) for column in zip(*figures, strict=True)]


def measure_starts() -> None:
    table.at_most("import loopcanary", median_ms(IMPORT), 20, unit="ms")
    kept, modules = first_loop(KEPT)
    with_toml, _ = first_loop(KEPT, TOML)
    in_process, all_modules = first_loop(IN_PROCESS)
    note = f"{in_process:.3g} ms in process"
    table.at_most("install() and first loop, CPU", kept, FIRST_LOOP_MS, unit="ms", note=note)
    table.at_most("a settings file, CPU more", with_toml - kept, TOML_MS, unit="ms")
    table.at_most("modules of ours", modules, MODULES, note=f"{all_modules} in process")
    table.told("child that imports asyncio and runs no loop", f"{median_ms(ARM):.3g} ms")
    starts = alternate(lambda: start_ms("1"), lambda: start_ms("0"), STARTS)
    added = statistics.median(watched - plain for watched, plain in starts)
    plain = statistics.median(plain for _, plain in starts)
    table.told("python -c pass, LOOPCANARY=1 against 0", f"+{added:.3g} ms", note=f"{plain:.3g} ms without")


def measure_memory() -> None:
    idle, plain_loop = memory("idle", 0, {}), memory("plain", 0, {})
    for words, way, most in (("", KEPT, MEMORY_MIB), (", in process", IN_PROCESS, 10)):
        for how, stalls, when, without in (
            ("armed", 0, "in a child that runs no loop", idle),
            ("watched", 0, "after a loop has run", plain_loop),
            ("watched", STALLS, f"after {STALLS} stalls", plain_loop),
        ):
            pairs = zip(memory(how, stalls, way), without, strict=True)
            rss, pss, uss = ((own - other) / 1024 for own, other in pairs)
            note = f"PSS {pss:.1f}, USS {uss:.1f} MiB"
            table.at_most(f"memory added, {when}, RSS{words}", rss, most, unit="MiB", note=note)


def measure() -> None:
    """Prints what is added to start, modules and memory."""
    measure_starts()
    measure_memory()


if __name__ == "__main__":
    table.run(measure)
