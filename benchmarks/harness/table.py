"""The table that every benchmark fills: what, figure, budget, and whether it is kept.

With BENCHMARK_FIGURES=FILE each figure is also written into that file of JSON: benchmarks/figures.json is the
one from which tools/cost-tables writes the tables of README and docs/how-to/production.md.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

_Size = TypeVar("_Size", int, float)


def sized(whole: _Size, smallest: _Size) -> _Size:
    """How much a benchmark does: with BENCHMARK_SMALLEST=1 only enough to see that it runs."""
    return smallest if os.environ.get("BENCHMARK_SMALLEST") == "1" else whole


class Ratio(NamedTuple):
    """A ratio over pairs: its median, and the pairs that were furthest from it."""

    median: float
    low: float
    high: float
    pairs: int

    @classmethod
    def of(cls, pairs: Sequence[tuple[float, float]]) -> Ratio:
        """First over second, pair by pair."""
        ratios = [first / second for first, second in pairs]
        return cls(statistics.median(ratios), min(ratios), max(ratios), len(ratios))

    def __str__(self) -> str:
        return f"{self.median:.3f} ({self.low:.2f}-{self.high:.2f}, {self.pairs} pairs)"


def at_most(what: str, value: float, budget: float, *, unit: str = "", note: str = "") -> None:
    """A row whose figure shall not be above the budget."""
    _row(what, f"{value:.3g}{_spaced(unit)}", f"<= {budget:g}{_spaced(unit)}", value <= budget, note)
    _record(what, value)


def at_least(what: str, value: float, budget: float, *, unit: str = "", note: str = "") -> None:
    """A row whose figure shall not be below the budget."""
    _row(what, f"{value:.3g}{_spaced(unit)}", f">= {budget:g}{_spaced(unit)}", value >= budget, note)
    _record(what, value)


def ratio_at_most(what: str, ratio: Ratio, budget: float, *, note: str = "") -> None:
    """A row whose ratio shall not be above the budget."""
    _row(what, str(ratio), f"<= {budget:.2f}", ratio.median <= budget, note)
    _record(what, ratio.median)


def ratio_at_least(what: str, ratio: Ratio, budget: float, *, note: str = "") -> None:
    """A row whose ratio shall not be below the budget."""
    _row(what, str(ratio), f">= {budget:.2f}", ratio.median >= budget, note)
    _record(what, ratio.median)


def told(what: str, figure: object, *, note: str = "") -> None:
    """A row without a budget."""
    _row(what, str(figure), "", None, note)
    if isinstance(figure, Ratio):
        _record(what, figure.median)


def _record(what: str, value: float) -> None:
    """Writes the figure into the file of BENCHMARK_FIGURES, with the Python and the machine's load."""
    name = os.environ.get("BENCHMARK_FIGURES")
    if not name:
        return
    path, program = Path(name), Path(sys.argv[0]).stem
    figures = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    of_program = figures.setdefault(program, {})
    of_program["python"] = _version()
    of_program["load"] = round(os.getloadavg()[0])
    of_program.setdefault("figures", {})[what] = float(f"{value:.3g}")
    path.write_text(json.dumps(figures, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def _version() -> str:
    return ".".join(map(str, sys.version_info[:3]))


def _spaced(unit: str) -> str:
    return f" {unit}" if unit else ""


def _row(what: str, figure: str, budget: str, kept: bool | None, note: str) -> None:
    verdict = {True: "ok", False: "over", None: ""}[kept]
    print(f"{what:<50}  {figure:<34}  {budget:<12}  {verdict:<4}  {note}".rstrip(), flush=True)


def run(measure: Callable[[], None], child: Callable[[str], None] | None = None) -> None:
    """A benchmark's main: measures and prints, or is one of its own children."""
    if sys.argv[1:2] == ["--child"] and child is not None:
        child(sys.argv[2])
        return
    _row(f"CPython {_version()}", "figure", "budget", None, "")
    measure()
