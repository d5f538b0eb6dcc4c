"""The functions of other parts that pages need; assembly brings them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from loopcanary.late_dataclass import dataclass
from loopcanary.model import Issue, LoopHealth, Stall
from loopcanary.report.figures.gains import Delays


class SourceText(Protocol):
    """A file of source as it is now."""

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines without their ends."""

    @property
    def modified_wall_ns(self) -> int | None:
        """When the file was last written; None: never since it was compiled."""


Row = tuple[str, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """Functions that raise nothing."""

    read_source: Callable[[str], SourceText | None]
    """The text of a file, by its name in code objects."""
    why_grouped: Callable[[Issue, Sequence[Stall]], tuple[str, ...]]
    """The parts of an issue's fingerprint, each as `name=value`, from the issue and the stalls in it."""
    delays: Delays
    """From loops to the p99 delay that they would have without some stalls."""
    longer: Callable[[LoopHealth, Sequence[int]], Sequence[float]]
    """The shares of events at random moments that wait longer than each of these times (ns); empty: unknown.
    """
    doctor: Callable[[], Iterable[Row]]
    """(name, `ok` | `off` | `problem`, detail) of everything that may not work here; some rows take seconds.
    """
