"""How many samples of Python that moves all the time give a stack, and whether there is each call in it.

Each kind calls small functions as fast as it can: on the main thread, while the watchdog reads it from
another core; on a thread of its own; and on the watchdog's core, where it does not run while it is read.
`with a stack` is the share of samples that give one; beside it the program's own innermost functions, by
share of time. `innermost as on one core` is how much of these shares is the same there: what is missing
ended further out than the thread was. Every call between two of the program's functions is compared with
the source: the line that the caller is said to be at has to hold the call. One that does not never was,
and is a defect (docs/internals/walker.md).
"""

from __future__ import annotations

import asyncio
import csv
import dataclasses
import functools
import io
import itertools
import json
import linecache
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from harness import table

SECONDS = table.sized(0.9, 0.3)
REPEATS = table.sized(3, 1)
BUDGET = 0.98
INNERMOST = {"main": 0.95, "thread": 0.90}

# What the line of a caller has to hold, by the function that it called.
CALLS = {
    "_increased": "_increased(",
    "_lessened": "_lessened(",
    "_fits": "_fits(",
    "_placed": "_placed(",
    "_compare": "sorted(",
    "__eq__": "nobody in people",
    "_priced": "_priced(",
    "_is_wrong": "_is_wrong(",
    "_squares": "for number in numbers",
    "_even": "sum(",
    "_shouted": "re.sub(",
    "_until": "in _until(",
}


def _until(seconds: float) -> Iterator[None]:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        yield


def _increased(number: int) -> int:
    return number + 1


def _lessened(number: int) -> int:
    return number - 1


def tiny_calls() -> None:
    number = 0
    for _ in _until(SECONDS):
        for _ in range(200):
            number = _increased(number)
            number = _lessened(number)


def _fits(row: int, column: int, queens: list[tuple[int, int]]) -> bool:
    for other_row, other_column in queens:
        if column == other_column or abs(column - other_column) == row - other_row:
            return False
    return True


def _placed(row: int, size: int, queens: list[tuple[int, int]], end: float) -> int:
    if row == size or time.perf_counter() > end:
        return 1
    found = 0
    for column in range(size):
        if _fits(row, column, queens):
            found += _placed(row + 1, size, [*queens, (row, column)], end)
    return found


def backtracking() -> None:
    _placed(0, 14, [], time.perf_counter() + SECONDS)


def _compare(one: tuple[int, int], other: tuple[int, int]) -> int:
    if one[1] < other[1]:
        return -1
    return 1 if one[1] > other[1] else 0


def comparison() -> None:
    pairs = [(number, number * 7919 % 1009) for number in range(400)]
    for _ in _until(SECONDS):
        sorted(pairs, key=functools.cmp_to_key(_compare))


class Person:
    """Compared by Python, by way of C."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Person) and self.number == other.number

    __hash__ = None  # type: ignore[assignment]


def equality() -> None:
    people = [Person(number) for number in range(300)]
    nobody = Person(-1)
    for _ in _until(SECONDS):
        nobody in people  # noqa: B015


def _shouted(match: re.Match[str]) -> str:
    return match[0].upper()


def substitution() -> None:
    text = "alpha beta gamma delta " * 50
    for _ in _until(SECONDS):
        re.sub(r"\w+", _shouted, text)


def _priced(row: dict[str, str]) -> float:
    return int(row["count"]) * float(row["price"])


def csv_import() -> None:
    text = "count,price\n" + "\n".join(f"{number},{number / 3}" for number in range(200))
    for _ in _until(SECONDS):
        for row in csv.DictReader(io.StringIO(text)):
            _priced(row)


def _is_wrong(text: str) -> bool:
    try:
        int(text)
    except ValueError:
        return True
    return False


def exceptions() -> None:
    for _ in _until(SECONDS):
        for number in range(200):
            _is_wrong(f"x{number}")


def _squares(count: int) -> Iterator[int]:
    for number in range(count):
        yield number * number


def _even(numbers: Iterator[int]) -> Iterator[int]:
    for number in numbers:
        if number % 2 == 0:
            yield number


def generators() -> None:
    for _ in _until(SECONDS):
        sum(_even(_squares(300)))


def pure_json() -> None:
    data = {f"key {number}": [{"a": number, "b": [1, 2, 3]}] for number in range(50)}
    for _ in _until(SECONDS):
        json.dumps(data, indent=1)


KINDS: list[Callable[[], None]] = [
    tiny_calls, backtracking, comparison, equality, substitution, csv_import, exceptions, generators,
    pure_json,
]  # fmt: skip


async def _stalled(kind: Callable[[], None]) -> None:
    await asyncio.sleep(0.05)
    for _ in range(REPEATS):
        kind()
        await asyncio.sleep(0.02)


def _stalls(kind: str, way: str) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as store:
        loopcanary = [sys.executable, "-m", "loopcanary"]
        often = {**os.environ, "LOOPCANARY_SAMPLE_INTERVAL": "1ms", "LOOPCANARY_SAMPLE_DELAY": "10ms"}
        subprocess.run(
            [*loopcanary, "run", "--quiet", "--store", store, __file__, "--child", f"{kind} {way}"],
            check=True,
            env=often,
        )
        exported = subprocess.run(
            [*loopcanary, "export", "--format", "jsonl", "--store", store], check=True, capture_output=True
        )
    return [json.loads(line) for line in exported.stdout.splitlines()]


def _calls(stack: list[dict[str, Any]]) -> Iterator[bool]:
    """For each call between two functions of this file, whether the source has it."""
    for callee, caller in itertools.pairwise(stack):
        if callee["file"] == __file__ and callee["function"] in CALLS and caller["file"] == __file__:
            yield CALLS[callee["function"]] in linecache.getline(__file__, caller["line"])


@dataclasses.dataclass
class Seen:
    """What the samples of one kind, run in one way, gave."""

    samples: int = 0
    lost: int = 0
    innermost: Counter[str] = dataclasses.field(default_factory=Counter)
    calls: Counter[bool] = dataclasses.field(default_factory=Counter)

    def shares(self) -> dict[str, float]:
        """Of the time, by the program's own innermost function."""
        total = sum(self.innermost.values()) or 1
        return {name: weight / total for name, weight in self.innermost.most_common()}


def _seen(kind: str, way: str) -> Seen:
    seen = Seen()
    for stall in _stalls(kind, way):
        seen.samples += stall["samples"]
        seen.lost += stall["dropped_samples"]
        for stack in stall["stacks"]:
            own = [frame["function"] for frame in stack["frames"] if frame["file"] == __file__]
            seen.innermost[own[0] if own else "none"] += stack["weight_ms"]
            seen.calls.update(_calls(stack["frames"]))
    return seen


def _told(shares: dict[str, float]) -> str:
    return ", ".join(f"{name} {share:.0%}" for name, share in list(shares.items())[:3])


def measure() -> None:
    """Prints rows for each kind."""
    for kind in (kind.__name__ for kind in KINDS[: table.sized(len(KINDS), 1)]):
        truth = _seen(kind, "one_core").shares()
        table.told(f"{kind}, one core", "", note=_told(truth))
        for way, budget in INNERMOST.items():
            seen = _seen(kind, way)
            shares = seen.shares()
            same = sum(min(share, truth.get(name, 0)) for name, share in shares.items())
            kept = 1 - seen.lost / max(1, seen.samples)
            note = f"{seen.samples} samples; {_told(shares)}"
            table.at_least(f"{kind}, {way}, with a stack", kept, BUDGET, note=note)
            table.at_least(f"{kind}, {way}, innermost as on one core", same, budget)
            wrong, total = seen.calls[False], seen.calls.total()
            table.at_most(f"{kind}, {way}, calls that never were", wrong, 0, note=f"of {total}")


def child(kind_and_way: str) -> None:
    """Runs one kind, in a loop."""
    kind, way = kind_and_way.split()
    if way == "one_core":
        core = {min(os.sched_getaffinity(0))}
        for thread in Path("/proc/self/task").iterdir():  # the watchdog runs already
            os.sched_setaffinity(int(thread.name), core)
    run = functools.partial(asyncio.run, _stalled(globals()[kind]))
    if way == "thread":
        loop_thread = threading.Thread(target=run)
        loop_thread.start()
        loop_thread.join()
    else:
        run()


if __name__ == "__main__":
    table.run(measure, child)
