"""The input tracer: from an event's time stamp to the end of its handling, on one thread."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Protocol

from loopcanary.late_dataclass import dataclass
from loopcanary.model.figures import INPUT_LAG_NS, InputFigures, bucket_of, quantile_ns
from loopcanary.whose_exception import ours

_BEFORE_MAX = 16
"""How many handled events are remembered, to show what a late event waited for."""
_AGE_MAX_NS = 3_600_000_000_000
"""A time stamp that is older than this comes from another clock."""
_NAME_MAX = 120
_TOLD_EVERY = 1_024
"""Events between two notes of their sums. Without these notes a killed program would leave no sums."""


class LagSink(Protocol):
    """Takes input from the tracer. Nothing here raises."""

    @property
    def scene(self) -> Callable[[], str | None]:
        """Returns the scene that the program is in, as the program has named it."""

    def lagged(self, lag: RawInputLag) -> None:
        """An event was handled too late."""

    def counted(self) -> None:
        """Many events were handled."""

    def failed(self, error: Exception, /) -> object:
        """An error in our own code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RawHandled:
    """An event that was handled."""

    name: str
    begin_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RawInputLag:
    """An event that was handled too late, in the clock's own time."""

    thread: str
    loop: str
    name: str
    scene: str | None
    arrived_ns: int
    begin_ns: int
    end_ns: int
    before: tuple[RawHandled, ...]
    """Events that were handled while it waited, oldest first; the last sixteen."""

    @property
    def ended_ns(self) -> int:
        return self.end_ns


class InputTracer:
    """Counts the lags of one thread's input; see protocols.InputTrace."""

    def __init__(
        self, sink: LagSink, *, thread: str, loop: str, limit_ns: int = INPUT_LAG_NS, one_of: int = 1
    ) -> None:
        self.thread = thread
        self.loop = loop
        self._sink = sink
        self._limit_ns = limit_ns
        self._one_of = one_of
        self.is_off = False
        """Events are not counted now."""
        self._counts: dict[int, int] = {}
        self._events = self._lag_ns = self._queued_ns = self._worst_ns = 0
        self._worst: str | None = None
        self._before: deque[RawHandled] = deque(maxlen=_BEFORE_MAX)

    def handled(
        self, name: str, arrived_ns: int, begin_ns: int, end_ns: int, scene: str | None = None
    ) -> None:
        """An event was handled. That thread."""
        try:
            self._count(name, arrived_ns, begin_ns, end_ns, scene)
        except ours() as error:  # the boundary to the program's own handling
            self._sink.failed(error)

    def _count(self, name: str, arrived_ns: int, begin_ns: int, end_ns: int, scene: str | None) -> None:
        lag_ns = end_ns - arrived_ns
        if self.is_off or not 0 <= lag_ns < _AGE_MAX_NS:
            return  # or: a stamp of another clock, or of one that was set
        bucket = bucket_of(lag_ns)
        self._counts[bucket] = self._counts.get(bucket, 0) + 1
        self._events += 1
        self._lag_ns += lag_ns
        self._queued_ns += max(0, begin_ns - arrived_ns)
        if lag_ns > self._worst_ns:
            self._worst_ns, self._worst = lag_ns, name[:_NAME_MAX]
        if lag_ns > self._limit_ns:
            self._sink.lagged(
                RawInputLag(
                    thread=self.thread,
                    loop=self.loop,
                    name=name[:_NAME_MAX],
                    scene=self._sink.scene() or scene,
                    arrived_ns=arrived_ns,
                    begin_ns=max(begin_ns, arrived_ns),
                    end_ns=end_ns,
                    before=tuple(one for one in self._before if one.end_ns > arrived_ns),
                )
            )
        if self._events % _TOLD_EVERY == 0:
            self._sink.counted()
        if self._limit_ns < _AGE_MAX_NS:  # else none is too late
            self._before.append(RawHandled(name=name[:_NAME_MAX], begin_ns=begin_ns, end_ns=end_ns))

    @property
    def events(self) -> int:
        return self._events

    def read(self) -> InputFigures:
        """What has been handled so far; one event more or less. Any thread."""
        counts = dict(self._counts)
        return InputFigures(
            thread=self.thread,
            loop=self.loop,
            events=self._events,
            p50_ns=min(quantile_ns(counts, 0.5), self._worst_ns),
            p98_ns=min(quantile_ns(counts, 0.98), self._worst_ns),
            worst_ns=self._worst_ns,
            worst=self._worst,
            queued_ns=self._queued_ns,
            lag_ns=self._lag_ns,
            one_of=self._one_of,
        )
