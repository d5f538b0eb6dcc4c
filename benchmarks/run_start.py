"""What `loopcanary run -c pass` takes more than `python -c pass`: what watching adds to the shortest program.

Fresh processes are started in turns; each difference and each ratio is of two neighbours. Wall time is what a
person or a shell waits for, from the start to the end; CPU time leaves out the machine's other work, and what
`run` waits for. Unwatched (LOOPCANARY=0) is the command line alone: it is over when the program's own Python
starts. The command is the script that pip made; that of a pip before 25 imports `re`, some 6 ms of CPU. A
keeper would take the stalls, of which there are none.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from harness import table
from harness.children import PROGRAM_CPU, alternate

STARTS = table.sized(40, 1)
BUDGET_MS = 40
PLAIN = (sys.executable, "-c", "pass")
RUN = (str(Path(sys.executable).with_name("loopcanary")), "run", "-c", "pass")
OPTIONS = ("--threshold", "80ms", "--ignore", "vendor")
TOML = "[tool.loopcanary]\nthreshold = '80ms'\nignore = ['vendor']\n"
Clock = Callable[[], float]


def children_cpu_s() -> float:
    """CPU time of the children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


CLOCKS: dict[str, Clock] = {"wall": time.perf_counter, "CPU": children_cpu_s}


def start_ms(clock: Clock, command: tuple[str, ...], folder: str, **settings: str) -> float:
    """From the start to the end of a process, in milliseconds."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LOOPCANARY")}
    begin = clock()
    subprocess.run(
        command,
        env={**kept, "LOOPCANARY_KEEPER": "1", **settings},
        cwd=folder,
        check=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return (clock() - begin) * 1000


def compare(what: str, command: tuple[str, ...], folder: str, **settings: str) -> None:
    """A row for each clock: the medians of difference and ratio."""
    for name, clock in CLOCKS.items():
        watched = partial(start_ms, clock, command, folder, **settings)
        plain = partial(start_ms, clock, PLAIN, folder)
        watched(), plain()  # what the first one reads from the disk
        pairs = alternate(watched, plain, STARTS)
        added = statistics.median(first - second for first, second in pairs)
        note = f"{statistics.median(second for _, second in pairs):.3g} ms without, {table.Ratio.of(pairs)}"
        table.at_most(f"{what}, {name}", added, BUDGET_MS, unit="ms more", note=note)


def measure() -> None:
    """Prints what is added: watched, with settings, and unwatched."""
    os.sched_setaffinity(0, {PROGRAM_CPU})  # all that is started lives there, and this process waits
    with tempfile.TemporaryDirectory(prefix="loopcanary-benchmark-", ignore_cleanup_errors=True) as folder:
        compare("loopcanary run -c pass", RUN, folder)
        compare("unwatched", RUN, folder, LOOPCANARY="0")
        compare("with options", (RUN[0], "run", *OPTIONS, *RUN[2:]), folder)
        Path(folder, "pyproject.toml").write_text(TOML, encoding="utf-8")
        compare("with a settings file", RUN, folder)


if __name__ == "__main__":
    table.run(measure)
