"""What the loop's histogram costs each turn: the increment of a bucket, in the C core, without Python.

`turn_histogram.c` beside this file is compiled against the core's sources, as the extension is. Its figure
is of warm caches: after a long callback the bucket's line comes from memory, as does all else that a turn
touches.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sysconfig
import tempfile
from pathlib import Path

from harness import table

ROUNDS = table.sized(41, 1)
BUDGET_NS = 5.0
HERE = Path(__file__).resolve().parent
NATIVE = HERE.parent / "native"
SOURCES = ("core/lane/lane.c", "core/lane/long_work.c", "core/clock/clock.c")


def rounds() -> list[tuple[float, float]]:
    """Of each round: ns of a turn's end, and ns with one increment more."""
    compiler = os.environ.get("CC") or (sysconfig.get_config_var("CC") or "cc").split()[0]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        program = Path(folder) / "turn_histogram"
        sources = [HERE / "turn_histogram.c", *(NATIVE / source for source in SOURCES)]
        flags = ["-D_GNU_SOURCE", "-std=c11", "-O2", f"-I{NATIVE}"]
        subprocess.run([compiler, *flags, *sources, "-lm", "-o", program], check=True)
        told = subprocess.run([program, str(ROUNDS)], check=True, capture_output=True, text=True).stdout
    return [(float(plain), float(more)) for plain, more in map(str.split, told.splitlines())]


def measure() -> None:
    """Prints what one increment adds to the end of a turn, pair by pair."""
    pairs = rounds()
    added = sorted(more - plain for plain, more in pairs)
    low, high = added[len(added) // 4], added[-1 - len(added) // 4]
    note = f"half of {len(added)} pairs: {low:.1f}-{high:.1f}"
    table.at_most("the histogram, a turn", statistics.median(added), BUDGET_NS, unit="ns", note=note)
    table.told("the whole end of a turn", f"{statistics.median(plain for plain, _ in pairs):.3g} ns")


if __name__ == "__main__":
    table.run(measure)
