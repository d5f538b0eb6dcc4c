"""Where a third party's tracer reports what it found: a short queue that the drain thread empties."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from loopcanary.late_dataclass import dataclass
from loopcanary.whose_exception import ours

if TYPE_CHECKING:
    from loopcanary.model import LagIssue

WAITING_MAX = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """An issue as it was reported, not looked at yet."""

    issue: LagIssue
    """As a keeper reads it: on the wire."""
    thread: str
    scene: str | None
    told_ns: int
    """time.monotonic_ns()"""
    tracer: str = ""


class TracerDesk:
    """See protocols.Desk. `take` and `counts`: drain thread."""

    def __init__(
        self,
        name: str,
        *,
        admits: Callable[[int], bool],
        here: Callable[[], tuple[str, str | None]],
        ring: Callable[[], None],
        monotonic_ns: Callable[[], int],
        notes: Callable[[], Any] = lambda: None,
        refused: Callable[[str, Exception], object] = lambda name, error: None,  # noqa: ARG005
    ) -> None:
        """`admits`: whether one more may pass at this time; `here`: name and scene of the calling thread;
        `ring` makes the drain look; `notes`: what a keeper reads (Notes), None: the drain does; `refused`
        gets a tracer's name, and why its report is not an issue."""
        self.name = name
        self._admits = admits
        self._notes = notes
        self._refused = refused
        self.when_failed: Callable[[Exception], object] = _ignore
        self._here = here
        self._ring = ring
        self._monotonic_ns = monotonic_ns
        self._waiting: deque[Told] = deque(maxlen=WAITING_MAX)
        self._is_open = True
        self._not_taken = 0
        self._counts: Counter[str] = Counter()

    def report(self, issue: LagIssue) -> bool:
        """Takes an issue to be looked at. Any thread; nothing is raised."""
        if not self._is_open or len(self._waiting) >= WAITING_MAX:
            self._not_taken += 1
            return False
        try:
            thread, scene = self._here()
            now_ns = self._monotonic_ns()
            told = Told(issue=issue, tracer=self.name, thread=thread, scene=scene, told_ns=now_ns)
            if not self._note(told):
                self._waiting.append(told)
                self._ring()
        except ours() as error:  # the boundary to the program's own work
            self.failed(error)
            return False
        return True

    def _note(self, told: Told) -> bool:
        """False: it waits for the drain of this process."""
        notes = self._notes()
        if notes is None:
            return False
        if not self._admits(told.told_ns):
            self.count("suppressed_storm")
            return True
        try:
            notes.reported(told)
            self.count("reported")
        except ours() as error:  # a third party's object
            if self._notes() is not notes:  # the drain takes over just now
                return False
            self.refuse(error)
        return True

    def refuse(self, error: Exception) -> None:
        """Counts a report that is not an issue."""
        self.count("refused")
        self._refused(self.name, error)

    def failed(self, error: Exception) -> None:
        """The tracer is switched off. Any thread; nothing is raised."""
        if self._is_open:
            self._is_open = False
            self.when_failed(error)

    def open(self) -> None:
        """Takes reports from now on: its tracer is started."""
        self._is_open = True

    def close(self) -> None:
        """Takes nothing more; what waits is still looked at. Any thread."""
        self._is_open = False

    def forget(self) -> None:
        """In a forked child: what waits is the parent's."""
        self._is_open = False
        self._waiting = deque(maxlen=WAITING_MAX)

    def next_ns(self) -> int | None:
        """When the oldest one was reported; None: none waits."""
        try:
            return self._waiting[0].told_ns
        except IndexError:
            return None

    def take(self, told_before_ns: int | None, now_ns: int) -> list[Told]:
        """The reports from before that time that may pass; None: all reports."""
        found = []
        while self._waiting and (told_before_ns is None or self._waiting[0].told_ns <= told_before_ns):
            told = self._waiting.popleft()
            if self._admits(now_ns):
                found.append(told)
            else:
                self._counts["suppressed_storm"] += 1
        return found

    def count(self, what: str) -> None:
        self._counts[what] += 1

    def counts(self) -> dict[str, int]:
        """Counts of the reported issues, by what was done with them. Any thread."""
        counts = dict(self._counts)
        if self._not_taken:
            counts["not_taken"] = self._not_taken
        return {f"tracer_{self.name}_{what}": count for what, count in counts.items()}


class TracerDesks:
    """The desks of one start of the engine. Drain thread, but for `open` and `forget`."""

    def __init__(
        self,
        here: Callable[[], tuple[str, str | None]],
        ring: Callable[[], None],
        monotonic_ns: Callable[[], int],
        **more: Any,
    ) -> None:
        """As TracerDesk."""
        self._make = partial(TracerDesk, here=here, ring=ring, monotonic_ns=monotonic_ns, **more)
        self._desks: list[TracerDesk] = []

    def open(self, name: str, admits: Callable[[int], bool]) -> TracerDesk:
        """For one tracer; `admits`: whether one more issue of its own may pass at this time."""
        desk: TracerDesk = self._make(name=name, admits=admits)
        self._desks = [*self._desks, desk]
        return desk

    def leave(self, desks: Iterable[TracerDesk]) -> None:
        """Their tracers have ended, and all reports were taken."""
        gone = set(map(id, desks))
        self._desks = [desk for desk in self._desks if id(desk) not in gone]

    def forget(self) -> None:
        """Forgets all reports, in a forked child."""
        self._desks = []

    def next_ns(self) -> int | None:
        """When the oldest one was reported; None: none waits."""
        return min((ns for desk in self._desks if (ns := desk.next_ns()) is not None), default=None)

    def take(self, told_before_ns: int | None, now_ns: int) -> Iterator[tuple[TracerDesk, Told]]:
        """As TracerDesk, with the desk."""
        return ((desk, told) for desk in self._desks for told in desk.take(told_before_ns, now_ns))


def _ignore(error: Exception) -> None:
    del error
