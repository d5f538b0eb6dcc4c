"""What one sample costs: prints microseconds a walk of a 50-frame stack, for each kind of thread.

    python tests/native_walker/bench_walk.py

Budget: a warm sample of a stalled thread in 30 us, without allocation (tests count its reads instead).
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

DEPTH = 46
ROUNDS = 3000
released = threading.Event()


def load_probe(folder: Path) -> Any:
    spec = importlib.util.spec_from_file_location("conftest", Path(__file__).with_name("conftest.py"))
    assert spec is not None
    assert spec.loader is not None
    conftest = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(conftest)
    found = importlib.util.spec_from_file_location("walker_probe", conftest.build(folder))
    assert found is not None
    assert found.loader is not None
    probe = importlib.util.module_from_spec(found)
    found.loader.exec_module(probe)
    return probe


def parks() -> None:
    released.wait()


def computes_in_c() -> None:
    data = bytes(50_000_000)
    while not released.is_set():
        hashlib.sha256(data)


def leaf() -> int:
    return 1


def computes_in_python() -> None:
    while not released.is_set():
        leaf()


def calls(depth: int, end: Callable[[], None]) -> None:
    if depth == 0:
        return end()
    return calls(depth - 1, end)


async def awaits(depth: int, end: Callable[[], None]) -> None:
    if depth == 0:
        return end()
    return await awaits(depth - 1, end)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        probe = load_probe(Path(folder))
    for kind, runs in (
        ("calls", calls),
        ("coroutines", lambda depth, end: asyncio.run(awaits(depth, end))),
    ):
        for end in (parks, computes_in_c, computes_in_python):
            released.clear()
            thread = threading.Thread(target=runs, args=(DEPTH, end), daemon=True)
            thread.start()
            time.sleep(0.3)
            probe.bench(thread.native_id, 100)
            times, frames, failed = probe.bench(thread.native_id, ROUNDS)
            released.set()
            thread.join()
            times.sort()
            print(  # noqa: T201 - a program
                f"{sys.version.split()[0]:8} {kind:10} {end.__name__:18} {frames} frames"
                f"  median {statistics.median(times) / 1000:5.1f} us"
                f"  p99 {times[len(times) * 99 // 100] / 1000:5.1f} us  failed {failed}"
            )


if __name__ == "__main__":
    main()
