"""What pages ask of other parts; assembly brings it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from loopcanary.late_dataclass import dataclass
from loopcanary.model import Issue, LoopHealth, Session, Stall, TracerStatus
from loopcanary.model.figures.tracers import TracerStep
from loopcanary.report.figures.loops import Delays


class SourceText(Protocol):
    """A file of source as it is now."""

    @property
    def lines(self) -> tuple[str, ...]:
        """Without line ends."""

    @property
    def modified_wall_ns(self) -> int | None:
        """When it was last written; None: never since it was compiled."""


Row = tuple[str, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """Functions that raise nothing."""

    read_source: Callable[[str], SourceText | None]
    """The text of a file, by the name its code objects have."""
    why_grouped: Callable[[Issue, Sequence[Stall]], tuple[str, ...]]
    """What an issue's fingerprint is made of, each part as `name=value`; the stalls are those in it."""
    delays: Delays
    """From loops to the p99 delay that they would have had without some stalls."""
    longer: Callable[[LoopHealth, Sequence[int]], Sequence[float]]
    """Of events that arrive at a loop at random moments, the share that waits longer than each of these times
    (ns); nothing where that is not known."""
    tracers: Callable[[Session], Sequence[TracerStatus] | None]
    """Those of the process, if it runs here; None: it does not, or cannot be read."""
    switch: Callable[[Session, TracerStep, str], str | None]
    """Starts or stops the tracer of this name in the process; why it did not."""
    doctor: Callable[[], Iterable[Row]]
    """(name, `ok` | `off` | `problem`, detail) of everything that may or may not work here; some take
    seconds."""
