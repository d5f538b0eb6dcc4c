"""The starts of two sets of runs against each other, and the imports that became slower."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from statistics import median

from loopcanary.late_dataclass import dataclass
from loopcanary.model import PhaseKind, StartKind, Startup

_IMPORTS_MAX = 5
_WORTH_NS = 1_000_000
"""Smaller changes of an import are not named."""
_SURE_FROM = 3
"""Starts on each side: by chance three are all slower than three others once in twenty times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """The starts of one side, in nanoseconds."""

    count: int
    median_ns: float
    least_ns: int
    most_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedImport:
    """A module whose own time, without that of what it imports, changed: medians, 0 where it was not seen."""

    name: str
    before_ns: float
    after_ns: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedStart:
    """The starts of one kind of one program."""

    program: str
    start: StartKind
    before: Times
    after: Times
    imports: tuple[ChangedImport, ...]
    """The five imports that changed most, at most."""

    @property
    def is_sure(self) -> bool:
        """Whether each side has three starts or more, and all of one side were slower."""
        enough = min(self.before.count, self.after.count) >= _SURE_FROM
        apart = self.before.most_ns < self.after.least_ns or self.after.most_ns < self.before.least_ns
        return enough and apart


def compare_starts(before: Sequence[Startup], after: Sequence[Startup]) -> tuple[ComparedStart, ...]:
    """Programs that started on both sides, by name, cold and warm starts apart, without starts that were cut
    off."""
    first, second = _by_program(before), _by_program(after)
    return tuple(
        ComparedStart(
            program=program,
            start=start,
            before=_times(first[program, start]),
            after=_times(second[program, start]),
            imports=_changed(first[program, start], second[program, start]),
        )
        for program, start in sorted(first.keys() & second.keys(), key=lambda key: (key[0], key[1].value))
    )


def _by_program(starts: Sequence[Startup]) -> dict[tuple[str, StartKind], list[Startup]]:
    found = defaultdict(list)
    for start in starts:
        if not start.cut:
            found[start.program, start.start].append(start)
    return found


def _times(starts: Sequence[Startup]) -> Times:
    lengths = [start.duration_ns for start in starts]
    return Times(count=len(lengths), median_ns=median(lengths), least_ns=min(lengths), most_ns=max(lengths))


def _changed(before: Sequence[Startup], after: Sequence[Startup]) -> tuple[ChangedImport, ...]:
    first, second = _own_times(before), _own_times(after)
    changed = [
        ChangedImport(name=name, before_ns=first.get(name, 0), after_ns=second.get(name, 0))
        for name in {*first, *second}
    ]
    changed = [one for one in changed if abs(one.after_ns - one.before_ns) >= _WORTH_NS]
    changed.sort(key=lambda one: (-abs(one.after_ns - one.before_ns), one.name))
    return tuple(changed[:_IMPORTS_MAX])


def _own_times(starts: Sequence[Startup]) -> dict[str, float]:
    """By module, the median over all starts."""
    own = [defaultdict[str, int](int) for _ in starts]
    for times, start in zip(own, starts, strict=True):
        for phase in start.phases:
            if phase.kind is PhaseKind.IMPORT:
                times[phase.name] += phase.self_ns
    return {
        name: median([times.get(name, 0) for times in own]) for name in {n for times in own for n in times}
    }
