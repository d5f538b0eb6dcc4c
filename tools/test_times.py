"""Prints where the time of a run of the tests went, from the junit files that pytest wrote.

For each folder of tests: how many, the seconds that they took, and the CPU seconds that they and the programs
that they started used. Then the slowest tests.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET


@dataclass(frozen=True, slots=True, kw_only=True)
class TestTime:
    """One test, or a sum of tests."""

    name: str
    tests: int
    seconds: float
    cpu_s: float


def main() -> None:
    """Prints both tables for all files together."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("files", nargs="+", type=Path, metavar="JUNIT")
    parser.add_argument("--slowest", type=int, default=25, metavar="N")
    parser.add_argument("--by-file", action="store_true", help="sums by file, not by folder")
    options = parser.parse_args()
    times = [time for file in options.files for time in read_times(file)]
    parts = sum_up(times, by_file=options.by_file)
    print_table("folder", [*parts, _sum("all", times)])
    print_table("slowest", sorted(times, key=lambda time: -time.seconds)[: options.slowest])


def read_times(file: Path) -> Iterator[TestTime]:
    """The tests of a junit file; those of the same folder share the first words of their names."""
    for case in ET.parse(file).iter("testcase"):  # noqa: S314 - pytest wrote it
        properties = {found.get("name"): found.get("value", "0") for found in case.iter("property")}
        yield TestTime(
            name=f"{case.get('classname', '')}::{case.get('name', '')}",
            tests=1,
            seconds=float(case.get("time", 0)),
            cpu_s=float(properties.get("cpu_s", "0")),
        )


def sum_up(times: Iterable[TestTime], *, by_file: bool) -> list[TestTime]:
    """One sum a folder (or file), the longest first."""
    parts: dict[str, list[TestTime]] = {}
    for time in times:
        words = time.name.partition("::")[0].split(".")
        parts.setdefault(".".join(words[1:] if by_file else words[1:-1]), []).append(time)
    return sorted((_sum(name, part) for name, part in parts.items()), key=lambda time: -time.seconds)


def print_table(title: str, rows: Sequence[TestTime]) -> None:
    """Figures first: names are long."""
    print(f"\n{'tests':>6} {'wall s':>8} {'CPU s':>8}  {title}")
    for row in rows:
        print(f"{row.tests:6} {row.seconds:8.1f} {row.cpu_s:8.1f}  {row.name}")


def _sum(name: str, times: Sequence[TestTime]) -> TestTime:
    return TestTime(
        name=name,
        tests=len(times),
        seconds=sum(time.seconds for time in times),
        cpu_s=sum(time.cpu_s for time in times),
    )


if __name__ == "__main__":
    main()
