"""What a report must have of a program that was killed. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from kills.victim import scene_of

THRESHOLD_NS = 100_000_000
WITHOUT_SAMPLE = "of these without a sample"


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One block, as the program told it. `end_ns` None: it was killed in it."""

    number: int
    function: str
    begin_ns: int
    end_ns: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """A program from its first block to its end. Times of the monotonic clock."""

    blocks: tuple[Block, ...]
    killed_ns: int
    """Just before the kill."""
    wall_ns: int
    """What the wall clock read when the monotonic one read 0."""
    told: tuple[str, ...] = ()
    """Scenes of the stalls that the console told in full."""
    keepers: int = 0
    """How many keepers were killed meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Margins:
    """How long after the moment a fact may be missing. Nanoseconds."""

    noticed_ns: int
    """A stall, after the threshold."""
    kept_ns: int | None = None
    """One that is over, after its end. None: it is kept as soon as it was noticed, one that goes on, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """`checked`: facts by kind that had to be there; `misses`: a line for each that was not."""

    checked: Counter[str]
    misses: tuple[str, ...]


def blocks_of(lines: Iterable[Sequence[Any]]) -> tuple[Block, ...]:
    """From what the program said."""
    begun: dict[int, tuple[str, int]] = {}
    ended: dict[int, int] = {}
    for word, number, function, at_ns in lines:
        if word == "begin":
            begun[number] = (function, at_ns)
        else:
            ended[number] = at_ns
    return tuple(
        Block(number=number, function=function, begin_ns=begin_ns, end_ns=ended.get(number))
        for number, (function, begin_ns) in begun.items()
    )


def judge(life: Life, stalls: Sequence[dict[str, Any]], margins: Margins) -> Verdict:
    """Compares the life with the stalls of its report."""
    checked: Counter[str] = Counter()
    if life.keepers:
        checked["keepers killed"] += life.keepers
    misses = [f"{scene} was told {times} times" for scene, times in Counter(life.told).items() if times > 1]
    for block in life.blocks:
        found = [stall for stall in stalls if _is_of(stall, block, life, margins)]
        states = _states(block, life, margins)
        if states is not None:
            checked["killed in it" if block.end_ns is None else "ended before"] += 1
            if found and not any(stall["samples"] for stall in found):
                checked[WITHOUT_SAMPLE] += 1
        misses += [f"{_words(block, life)}: {fault}" for fault in _faults(block, found, states)]
    return Verdict(checked=checked, misses=tuple(misses))


def _is_of(stall: dict[str, Any], block: Block, life: Life, margins: Margins) -> bool:
    """Scenes are read by the watchdog. Where it had no core during the whole stall, the time tells."""
    if stall["scene"] is not None or stall["samples"]:
        return bool(stall["scene"] == scene_of(block.number))
    began = datetime.fromisoformat(stall["began_at"])
    late = began - datetime.fromtimestamp((life.wall_ns + block.begin_ns) / 1e9, began.tzinfo)
    return abs(late) <= timedelta(milliseconds=margins.noticed_ns / 1e6)


def _states(block: Block, life: Life, margins: Margins) -> tuple[str, ...] | None:
    """What the state of the block's stall may be; None: it need not be there."""
    over_ns = block.end_ns if block.end_ns is not None else life.killed_ns
    if over_ns - block.begin_ns <= THRESHOLD_NS + margins.noticed_ns:
        return None
    if margins.kept_ns is not None and (
        block.end_ns is None or life.killed_ns - block.end_ns <= margins.kept_ns
    ):
        return None
    if block.end_ns is None:
        return ("killed",)
    # It had said its last word, but its callback was not over.
    return ("ended",) if life.killed_ns - block.end_ns > margins.noticed_ns else ("ended", "killed")


def _faults(block: Block, found: Sequence[dict[str, Any]], states: tuple[str, ...] | None) -> Iterator[str]:
    if len(found) > 1:
        yield f"there {len(found)} times: {[stall['id'] for stall in found]}"
    if not found and states is not None:
        yield "not there"
    for stall in found:
        function = (stall["culprit"] or {}).get("function")
        # What ran beside a block that was no stall by itself may be the cause, such as our own drain.
        may_be_none = function is None and states is None
        if function != block.function and not may_be_none and _must_name(stall, states):
            yield f"culprit {function}, {stall['evidence']}"
        if states is not None and stall["state"] not in states:
            yield f"state {stall['state']}"


def _must_name(stall: dict[str, Any], states: tuple[str, ...] | None) -> bool:
    if stall["samples"]:
        return not _host_had_most(stall)
    return states is not None and stall["scene"] is not None


def _host_had_most(stall: dict[str, Any]) -> bool:
    """Whether, by the report, the thread waited for a CPU for most of it: the samples are of the rest."""
    return bool(2 * (stall["ledger"]["run_queue_ms"] or 0) > stall["duration_ms"])


def _words(block: Block, life: Life) -> str:
    lasted_ns = (life.killed_ns if block.end_ns is None else block.end_ns) - block.begin_ns
    before_ns = 0 if block.end_ns is None else life.killed_ns - block.end_ns
    how = "killed in it" if block.end_ns is None else f"over {before_ns / 1e6:.1f} ms before the kill"
    return f"{block.function}, {lasted_ns / 1e6:.1f} ms, {how}"
