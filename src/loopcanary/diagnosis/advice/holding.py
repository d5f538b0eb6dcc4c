"""What the thread that holds a lock does inside its `with` block, and where the block is."""

from __future__ import annotations

from loopcanary.diagnosis.code.call_sites import header_end
from loopcanary.diagnosis.code.ownership import Owner
from loopcanary.diagnosis.code.stack_frames import NO_STACK, PlacedFrame
from loopcanary.diagnosis.culprit.blocker import STEADY_SHARE
from loopcanary.diagnosis.samples.marks import last_name
from loopcanary.diagnosis.samples.observation import Observation
from loopcanary.diagnosis.samples.views import WeighedSample
from loopcanary.diagnosis.title import short_place
from loopcanary.late_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class HeldBlock:
    """A `with` block of the lock."""

    header: str
    """`with self._lock`."""
    function: str
    at: str
    """File and line of the call inside it."""
    slow: str
    """That call, as written."""


def find_block(observation: Observation, waiting: tuple[WeighedSample, ...]) -> HeldBlock | None:
    """The program's own block whose holder kept most samples waiting by one call in it; None where that is
    not known for certain."""
    names = _names(_lock_text(observation, waiting[0])) if waiting else set()
    held: dict[HeldBlock | None, int] = {}
    for view, weight_ns in _taken_at(observation, waiting).items():
        block = None if view is None else _block(observation, view, names)
        held[block] = held.get(block, 0) + weight_ns
    best = max(held, key=lambda block: held[block], default=None)
    return best if best is not None and held[best] >= STEADY_SHARE * sum(held.values()) else None


def _taken_at(observation: Observation, waiting: tuple[WeighedSample, ...]) -> dict[PlacedFrame | None, int]:
    """The frames that took the lock, and how long they held it; None: not known."""
    held: dict[PlacedFrame | None, int] = {}
    for seen in waiting:
        stack, lock = seen.sample.holder_stack, seen.sample.lock
        outer = NO_STACK
        if stack is not None and not stack.truncated and lock is not None and lock.taken_at is not None:
            outer = observation.place_outer(stack, lock.taken_at)
        view = outer.at(0) if outer else None
        held[view] = held.get(view, 0) + max(1, seen.weight_ns)
    return held


def _block(observation: Observation, view: PlacedFrame, names: set[str]) -> HeldBlock | None:
    site = observation.sites.of(view)
    if view.owner is not Owner.OWN or site.text is None or site.callee is None:
        return None
    blocks = [text[:end] for _, text in observation.sites.blocks(view) if (end := header_end(text))]
    around = [header for header in blocks if header.startswith("with ")]
    of_lock = [header for header in around if names & _names(header)]
    header = of_lock[0] if of_lock else around[0] if len(around) == 1 else None
    if header is None:
        return None
    return HeldBlock(header, view.function.name, short_place(view.shown.file, view.shown.line), site.text)


def _lock_text(observation: Observation, seen: WeighedSample) -> str:
    """The lock where the thread waits: `self._lock` of `self._lock.acquire()`, or of a `with`."""
    site = observation.site(seen)
    return (site.text or "") if site.callee is None else site.callee.rpartition(".")[0]


def _names(text: str) -> set[str]:
    """`with self._lock, other as o` -> `_lock`, `other`."""
    items = text.removeprefix("with ").split(",")
    return {last_name(item.partition(" as ")[0].strip()) for item in items} - {""}
