"""What the stalls of one bug affected: scenes, tasks, callbacks, loops, programs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from loopcanary.late_dataclass import dataclass
from loopcanary.model import Stall

EXAMINED = 500
"""So many stalls, the latest, are looked at."""
_NUMBER = re.compile(r"\d+")
_NAMELESS = "Task-#"
"""What asyncio calls all tasks that were given no name."""

Counts = tuple[tuple[str, int], ...]
"""Names and how many stalls had them, most first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Affected:
    """Names, and how many of the examined stalls had them."""

    examined: int
    scenes: Counts
    tasks: Counts
    """Numbers left out: `Task-#` are all tasks without a name."""
    callbacks: Counts
    threads: Counts
    """With the kind of loop."""
    causes: Counts
    startup: int
    """Stalls before their loop first waited."""

    @property
    def named_tasks(self) -> Counts:
        """Those that were given a name."""
        return tuple(one for one in self.tasks if one[0] != _NAMELESS)


def affected(stalls: Sequence[Stall]) -> Affected:
    """What these stalls have in common, and what not."""
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
