"""The table that every benchmark fills: what, figure, budget, and whether it is kept."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple


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


def at_least(what: str, value: float, budget: float, *, unit: str = "", note: str = "") -> None:
    """A row whose figure shall not be below the budget."""
    _row(what, f"{value:.3g}{_spaced(unit)}", f">= {budget:g}{_spaced(unit)}", value >= budget, note)


def ratio_at_most(what: str, ratio: Ratio, budget: float, *, note: str = "") -> None:
    """A row whose ratio shall not be above the budget."""
    _row(what, str(ratio), f"<= {budget:.2f}", ratio.median <= budget, note)


def ratio_at_least(what: str, ratio: Ratio, budget: float, *, note: str = "") -> None:
    """A row whose ratio shall not be below the budget."""
    _row(what, str(ratio), f">= {budget:.2f}", ratio.median >= budget, note)


def told(what: str, figure: object, *, note: str = "") -> None:
    """A row without a budget."""
    _row(what, str(figure), "", None, note)


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
    version = ".".join(map(str, sys.version_info[:3]))
    _row(f"CPython {version}", "figure", "budget", None, "")
    measure()
