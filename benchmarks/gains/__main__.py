"""`make gains`: the p99 of a loop's delay that a report promises, and what came when the line was removed.

Each program runs with its bug and without, in turns, on a machine that is idle and beside two processes that
take both cores. The promise is kept if the measured p99 differs by 20 % or 5 ms at most; beside it stands how
far apart two runs of the mended program are. 1 if one was not kept, or too few were made.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import programs  # noqa: E402 - its folder is no package: each is run as a program

NEIGHBOURS = 2
LEAST_MADE = {"idle": 5, "loaded": 3}


def main() -> int:
    """Prints a row for each program and load."""
    parser = argparse.ArgumentParser(prog="python -m gains", description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--only", choices=programs.PROGRAMS, help="one program")
    parser.add_argument("--load", choices=LEAST_MADE, help="one load")
    options = parser.parse_args()
    names = [options.only] if options.only else list(programs.PROGRAMS)
    print("| load | program | p99 with it | promised | measured | two runs differ by | |")
    print("|---|---|---:|---:|---:|---:|---|")
    is_well = True
    for load in [options.load] if options.load else LEAST_MADE:
        with neighbours(NEIGHBOURS if load == "loaded" else 0):
            rows = [measure(load, name, options.pairs) for name in names]
        made = [kept for kept in rows if kept is not None]
        print(f"{load}: {sum(made)} of {len(made)} promises kept, of {len(names)} programs", flush=True)
        is_well &= all(made) and len(made) >= min(LEAST_MADE[load], len(names))
    return int(not is_well)


@contextmanager
def neighbours(count: int) -> Iterator[None]:
    """Processes that take a core each."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def measure(load: str, name: str, pairs: int) -> bool | None:
    """Whether the promise was kept; None: none was made."""
    reports = [(run(name), run(name, "mended")) for _ in range(pairs)]
    before = [p99_ms(broken) for broken, _ in reports]
    after = [p99_ms(mended) for _, mended in reports]
    promises = [made for broken, _ in reports if (made := promise_ms(broken)) is not None]
    spread = max(after) - min(after)
    is_made = 2 * len(promises) > pairs
    promised, measured = statistics.median(promises) if is_made else None, statistics.median(after)
    kept = None if promised is None else abs(promised - measured) <= max(5.0, 0.2 * measured)
    said = {None: "no promise", True: "kept", False: "**not kept**"}[kept]
    shown = "" if promised is None else f"{promised:.1f} ms"
    print(
        f"| {load} | {name} | {statistics.median(before):.1f} ms | {shown} | {measured:.1f} ms | "
        f"{spread:.1f} ms | {said} |",
        flush=True,
    )
    return kept


def run(*words: str) -> dict[str, Any]:
    """The report of one run, as JSON."""
    with TemporaryDirectory() as store:
        canary = [sys.executable, "-m", "loopcanary"]
        subprocess.run(
            [*canary, "run", "--store", store, str(HERE / "programs.py"), *words],
            env={**os.environ, "LOOPCANARY_CONSOLE": "off"},
            check=True,
        )
        shown = subprocess.run(
            [*canary, "report", "--store", store, "--format", "json"], capture_output=True, check=True
        )
    report: dict[str, Any] = json.loads(shown.stdout)
    return report


def p99_ms(report: dict[str, Any]) -> float:
    """The delay's p99 of the only loop."""
    return float(report["sessions"][0]["loops"][0]["delay_ms"]["p99"])


def promise_ms(report: dict[str, Any]) -> float | None:
    """What the report promises for the end of its largest bug."""
    groups: Sequence[dict[str, Any]] = report["groups"]
    gains = groups[0]["gains"] if groups else []
    return float(gains[0]["p99_without_ms"]) if gains else None


if __name__ == "__main__":
    sys.exit(main())
