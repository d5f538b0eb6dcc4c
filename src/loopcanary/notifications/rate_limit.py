"""How often a notification may be sent. Pure: time is an argument.

The first of a bug at once; then at most one for each `every_ns` of a bug, and at most `per_minute` of all
bugs together. What is withheld is counted and said with the next one.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import Generic, TypeVar

from loopcanary.late_dataclass import dataclass

_T = TypeVar("_T")
_MINUTE_NS = 60_000_000_000
_GROUPS_MAX = 1_000
OTHERS = "others"
"""The key of what came when the table was full."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Withheld:
    """Stalls not notified yet."""

    count: int = 0
    total_ns: int = 0
    max_ns: int = 0
    since_ns: int = 0
    """When the first of them was withheld."""

    def more(self, duration_ns: int, now_ns: int) -> Withheld:
        return Withheld(
            count=self.count + 1,
            total_ns=self.total_ns + duration_ns,
            max_ns=max(self.max_ns, duration_ns),
            since_ns=self.since_ns if self.count else now_ns,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Permit(Generic[_T]):
    """Whether this may be notified now."""

    item: _T
    """The latest of its group."""
    withheld: Withheld
    """What was withheld of the group until now."""
    is_counted: bool
    """Whether `withheld` counts the item itself: it had to wait."""


@dataclass(slots=True)
class _Group(Generic[_T]):
    item: _T
    free_ns: int
    """From then on it may be notified again."""
    withheld: Withheld


class RateLimit(Generic[_T]):
    """Not thread-safe."""

    def __init__(self, *, every_ns: int, per_minute: int) -> None:
        self._every_ns = every_ns
        self._told: deque[int] = deque(maxlen=per_minute)
        self._per_minute = per_minute
        self._groups: dict[str, _Group[_T]] = {}
        self._now_ns: int | None = None

    def offer(self, now_ns: int, key: str, duration_ns: int, item: _T) -> Permit[_T] | None:
        """One stall of the group `key`; None: it is withheld, and counted."""
        now_ns = self._forward(now_ns)
        group = self._group(now_ns, key, item)
        group.item = item
        if now_ns < group.free_ns or not self._has_room(now_ns):
            group.withheld = group.withheld.more(duration_ns, now_ns)
            return None
        return self._permit(now_ns, group, is_counted=False)

    def would_tell(self, now_ns: int, key: str) -> bool:
        """Whether one more of the bug may be notified now."""
        now_ns = self._forward(now_ns)
        group = self._groups.get(self._key(now_ns, key))
        return (group is None or now_ns >= group.free_ns) and self._has_room(now_ns)

    def admits(self, now_ns: int, key: str) -> bool:
        """Whether something that is not counted otherwise may be notified now; it then counts as sent."""
        if not self.would_tell(now_ns, key):
            return False
        self._told.append(self._forward(now_ns))
        return True

    def due(self, now_ns: int) -> list[Permit[_T]]:
        """Bugs of which something was withheld and may be sent now, most time first."""
        now_ns = self._forward(now_ns)
        waiting = [one for one in self._groups.values() if one.withheld.count and now_ns >= one.free_ns]
        waiting.sort(key=lambda one: -one.withheld.total_ns)
        permits = []
        for group in waiting:
            if not self._has_room(now_ns):
                break
            permits.append(self._permit(now_ns, group, is_counted=True))
        return permits

    def rest(self) -> Withheld:
        """All that is still withheld, as one sum; then it is forgotten."""
        rest = [group.withheld for group in self._groups.values() if group.withheld.count]
        for group in self._groups.values():
            group.withheld = Withheld()
        return Withheld(
            count=sum(one.count for one in rest),
            total_ns=sum(one.total_ns for one in rest),
            max_ns=max((one.max_ns for one in rest), default=0),
            since_ns=min((one.since_ns for one in rest), default=0),
        )

    @property
    def withheld(self) -> int:
        return sum(group.withheld.count for group in self._groups.values())

    def _permit(self, now_ns: int, group: _Group[_T], *, is_counted: bool) -> Permit[_T]:
        permit = Permit(item=group.item, withheld=replace(group.withheld), is_counted=is_counted)
        group.withheld = Withheld()
        group.free_ns = now_ns + self._every_ns
        self._told.append(now_ns)
        return permit

    def _has_room(self, now_ns: int) -> bool:
        return len(self._told) < self._per_minute or now_ns - self._told[0] >= _MINUTE_NS

    def _group(self, now_ns: int, key: str, item: _T) -> _Group[_T]:
        return self._groups.setdefault(self._key(now_ns, key), _Group(item, now_ns, Withheld()))

    def _key(self, now_ns: int, key: str) -> str:
        """The key to count under. In a full table, bugs with nothing withheld make room."""
        if key in self._groups or len(self._groups) < _GROUPS_MAX:
            return key
        done = [
            name for name, one in self._groups.items() if not one.withheld.count and now_ns >= one.free_ns
        ]
        for name in done:
            del self._groups[name]
        return key if done else OTHERS

    def _forward(self, now_ns: int) -> int:
        """The time, never less than before: a clock that goes back lets no more through."""
        self._now_ns = now_ns if self._now_ns is None else max(self._now_ns, now_ns)
        return self._now_ns
