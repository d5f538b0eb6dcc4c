"""The table of `make suites`: kept as JSON, shown as Markdown."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from suite_outcomes import Runs, Verdict, judge

BEGIN, END = "<!-- figures: made by `make suites`, do not edit -->", "<!-- end of figures -->"
_COLUMNS = (
    ("suite", "---"),
    ("Python", "---"),
    ("tests", "---:"),
    ("same result?", "---"),
    ("CPU plain, s", "---:"),
    ("watched, s", "---:"),
    ("ratio", "---:"),
    ("processes watched", "---:"),
    ("turns of loops", "---:"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A test that went differently in the first run of its suite."""

    test: str
    plain: Runs
    watched: Runs

    @property
    def verdict(self) -> Verdict:
        return judge(self.plain, self.watched)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One suite on one CPython."""

    suite: str
    version: str
    """The tested package's; empty where it is CPython's own suite."""
    python: str
    tests: int
    outcomes: str
    cpu_plain_s: float
    cpu_watched_s: float
    processes: int
    """That were watched."""
    turns: int
    """Of their loops."""
    differences: tuple[Difference, ...]

    @property
    def is_different(self) -> bool:
        """Also where no test ran at all: nothing is known then."""
        return not self.tests or any(one.verdict is Verdict.DIFFERENT for one in self.differences)


def read_rows(file: Path) -> list[Row]:
    """None where there is no file."""
    if not file.exists():
        return []
    return [_row(stored) for stored in json.loads(file.read_text(encoding="utf-8"))]


def _row(stored: dict[str, Any]) -> Row:
    differences = tuple(
        Difference(test=one["test"], plain=_runs(one["plain"]), watched=_runs(one["watched"]))
        for one in stored["differences"]
    )
    return Row(**{**stored, "differences": differences})


def _runs(stored: dict[str, list[str]]) -> Runs:
    return Runs(whole=tuple(stored["whole"]), alone=tuple(stored["alone"]))


def with_row(rows: Iterable[Row], new: Row) -> list[Row]:
    """With the new one in place of an older one of the same suite and CPython minor version."""

    def key(row: Row) -> tuple[str, str]:
        return row.suite, row.python.rpartition(".")[0]

    return sorted([*(row for row in rows if key(row) != key(new)), new], key=key)


def write_rows(file: Path, rows: Sequence[Row]) -> None:
    """For read_rows."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps([asdict(row) for row in rows], indent=1), encoding="utf-8")


def write_page(page: Path, rows: Sequence[Row]) -> None:
    """Puts the tables between the page's two marks. ValueError where it has none."""
    text = page.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    if not after:
        raise ValueError(f"{page} has no {BEGIN} ... {END}")
    figures = "\n".join(lines(rows))
    page.write_text(f"{before}{BEGIN}\n\n{figures}\n\n{END}{after}", encoding="utf-8")


def lines(rows: Sequence[Row]) -> Iterator[str]:
    """Both tables: one row a suite, then one row a test that differed."""
    yield _line([title for title, _ in _COLUMNS])
    yield _line([rule for _, rule in _COLUMNS])
    yield from (_line(_cells(row)) for row in rows)
    if any(row.differences for row in rows):
        yield ""
        yield _line(["suite", "test that differed", "verdict", "plain", "watched"])
        yield _line(["---"] * 5)
        for row in rows:
            for one in row.differences:
                yield _line([_name(row), f"`{one.test}`", one.verdict, str(one.plain), str(one.watched)])


def _cells(row: Row) -> list[str]:
    return [
        _name(row),
        row.python,
        f"{row.tests:,}",
        f"{_same(row)} ({row.outcomes})",
        f"{row.cpu_plain_s:.1f}",
        f"{row.cpu_watched_s:.1f}",
        f"{row.cpu_watched_s / row.cpu_plain_s:.2f}",
        f"{row.processes:,}",
        f"{row.turns:,}",
    ]


def _name(row: Row) -> str:
    return f"{row.suite} {row.version}".strip()


def _same(row: Row) -> str:
    if not row.tests:
        return "**no test ran**"
    different = sum(one.verdict is Verdict.DIFFERENT for one in row.differences)
    if different:
        return f"**no**, {different} different"
    return f"yes, but for {len(row.differences)} flaky" if row.differences else "yes"


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"
