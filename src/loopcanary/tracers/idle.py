"""The idle tracer: idle handlers of one thread, and work that asks for itself anew without end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from loopcanary.late_dataclass import dataclass
from loopcanary.model.figures import IDLE_LAG_NS, SPIN_NS, IdleFigures
from loopcanary.whose_exception import ours

NAMES_MAX = 64
OTHERS = "(others)"
_NAME_MAX = 120


class IdleSink(Protocol):
    """Takes idle work from the tracer. Nothing here raises."""

    @property
    def scene(self) -> Callable[[], str | None]:
        """Where the program says that it is."""

    def lagged(self, lag: RawIdleLag) -> None:
        """Idle work took too long."""

    def failed(self, error: Exception, /) -> object:
        """Something of ours is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RawIdleLag:
    """Idle work that took too long, in the clock's own time."""

    thread: str
    loop: str
    name: str
    scene: str | None
    begin_ns: int
    end_ns: int
    runs: int
    """1: one run of a handler; more: the loop never waited in them."""

    @property
    def ended_ns(self) -> int:
        return self.end_ns


class _IdleWork:
    """One kind of idle work."""

    __slots__ = ("longest_ns", "name", "runs", "spin", "spun_ns", "total_ns")

    def __init__(self, name: str) -> None:
        self.name = name
        self.runs = self.total_ns = self.longest_ns = self.spun_ns = 0
        self.spin = (0, 0, 0)
        """The last spin: its begin, length and runs as far as they were told."""


class IdleTracer:
    """Times the idle work of one thread; see protocols.IdleTrace."""

    def __init__(
        self,
        sink: IdleSink,
        *,
        thread: str,
        loop: str,
        limit_ns: int = IDLE_LAG_NS,
        spin_ns: int = SPIN_NS,
    ) -> None:
        self.thread = thread
        self.loop = loop
        self._sink = sink
        self._limit_ns = limit_ns
        self._spin_ns = spin_ns
        self._works: dict[str, _IdleWork] = {}
        self.is_off = False
        """Work is not counted now."""

    def ran(self, name: str, begin_ns: int, end_ns: int, scene: str | None = None) -> None:
        """An idle handler has run. That thread."""
        took_ns = end_ns - begin_ns
        if took_ns < 0 or self.is_off:
            return
        try:
            work = self._works.get(name) or self._new(name)
            work.runs += 1
            work.total_ns += took_ns
            work.longest_ns = max(work.longest_ns, took_ns)
            if took_ns > self._limit_ns:
                self._tell(work.name, begin_ns, end_ns, 1, scene)
        except ours() as error:  # the boundary to the program's own work
            self._sink.failed(error)

    def spun(self, name: str, begin_ns: int, end_ns: int, runs: int, *, are_counted: bool = False) -> None:
        """The loop never waited meanwhile; with the same begin again: it has gone on. That thread."""
        if self.is_off:
            return
        try:
            work = self._works.get(name) or self._new(name)
            took_ns = max(0, end_ns - begin_ns)
            _, told_ns, told_runs = work.spin if work.spin[0] == begin_ns else (begin_ns, 0, 0)
            work.spin = begin_ns, took_ns, runs
            work.spun_ns += took_ns - told_ns
            if not are_counted:
                work.runs += runs - told_runs
                work.total_ns += took_ns - told_ns
            if took_ns > self._spin_ns:
                self._tell(work.name, begin_ns, end_ns, runs, None)
        except ours() as error:  # as above
            self._sink.failed(error)

    def _tell(self, name: str, begin_ns: int, end_ns: int, runs: int, scene: str | None) -> None:
        self._sink.lagged(
            RawIdleLag(
                thread=self.thread,
                loop=self.loop,
                name=name,
                scene=self._sink.scene() or scene,
                begin_ns=begin_ns,
                end_ns=end_ns,
                runs=runs,
            )
        )

    def _new(self, name: str) -> _IdleWork:
        short = name[:_NAME_MAX]
        known = self._works.get(short)
        if known is not None:
            return known
        if len(self._works) >= NAMES_MAX:
            short = OTHERS
            if short in self._works:
                return self._works[short]
        work = _IdleWork(short)
        self._works = {**self._works, short: work}  # the drain may be on its way through the table
        return work

    def read(self) -> list[IdleFigures]:
        """What has run so far, most time first. Any thread."""
        works = sorted(self._works.values(), key=lambda work: -work.total_ns)
        return [
            IdleFigures(
                thread=self.thread,
                loop=self.loop,
                name=work.name,
                runs=work.runs,
                total_ns=work.total_ns,
                longest_ns=work.longest_ns,
                spun_ns=work.spun_ns,
            )
            for work in works
        ]
