"""The scenes, tasks, callbacks, loops and programs that the stalls of one bug affected."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from loopcanary.late_dataclass import dataclass
from loopcanary.model import Stall

EXAMINED = 500
"""The number of latest stalls that count."""
_NUMBER = re.compile(r"\d+")
_NAMELESS = "Task-#"
"""asyncio's name of tasks without a name, without its number."""

Counts = tuple[tuple[str, int], ...]
"""Names and numbers of stalls, most first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Affected:
    """Names, and how many of the examined stalls had them."""

    examined: int
    scenes: Counts
    tasks: Counts
    """Names without numbers; `Task-#` stands for all tasks without a name."""
    callbacks: Counts
    threads: Counts
    """With their kinds of loop."""
    causes: Counts
    startup: int
    """The number of stalls before their loop first waited."""

    @property
    def named_tasks(self) -> Counts:
        return tuple(one for one in self.tasks if one[0] != _NAMELESS)


def affected(stalls: Sequence[Stall]) -> Affected:
    return Affected(
        examined=len(stalls),
        scenes=_counts(stall.scene for stall in stalls),
        tasks=_counts(_NUMBER.sub("#", stall.task) if stall.task else None for stall in stalls),
        callbacks=_counts(stall.callback for stall in stalls),
        threads=_counts(f"{stall.thread} ({stall.loop})" for stall in stalls),
        causes=_counts(stall.cause.value for stall in stalls),
        startup=sum(stall.startup for stall in stalls),
    )


def _counts(names: Iterable[str | None]) -> Counts:
    counted = Counter(name for name in names if name)
    return tuple(sorted(counted.items(), key=lambda item: (-item[1], item[0])))
