"""From what another monitor wrote to a stall, judged as far as its figures carry.

The README of BlockCanary tells people to compare the time with the thread's CPU time (close: computing; far
apart: waiting) and to look at the last stacks. That is done here. What was waited for, the logs do not say:
the cause is then unknown, and there is no advice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from loopcanary.importers.java import JavaOwnership
from loopcanary.model import Blocker, Cause, Culprit, Ledger, Stall, StallScope, StallState
from loopcanary.model.stall import Grade, Surroundings, ThreadView, WeightedStack, culprit_at, severity_of
from loopcanary.protocols.imports import Blocked, CpuRow
from loopcanary.words.android import LOOPER
from loopcanary.words.sentences import say

COMPUTING_SHARE = 0.8
WAITING_SHARE = 0.2
_IO_SHARE = 0.2
_LONGEST_NS = 1 << 51
"""26 days: what the wire form keeps to the nanosecond."""
_MEMORY_MAX = 1 << 50
_FRAMES_MAX = 200
_STACKS_MAX = 100
_THREADS_MAX = 300
_TEXT_MAX = 500


def stall_of(
    blocked: Blocked, own: JavaOwnership, *, stall_id: str, session: str, began_wall_ns: int
) -> Stall:
    """The stall, without its fingerprint."""
    duration_ns = min(max(blocked.duration_ns, 0), _LONGEST_NS)
    ran_ns = None if blocked.ran_ns is None else min(max(blocked.ran_ns, 0), duration_ns)
    share = None if ran_ns is None or not duration_ns else ran_ns / duration_ns
    stacks, coverage = _weighed(blocked, own, duration_ns, began_wall_ns)
    culprit, blocker = culprit_of(stacks)
    rows = _of_its_time(blocked, began_wall_ns, duration_ns)
    is_cpu = share is not None and share >= COMPUTING_SHARE
    seen = min(len(blocked.stacks), _STACKS_MAX)
    return Stall(
        id=stall_id,
        fingerprint="",
        session=session,
        pid=0,
        thread="main",
        loop=LOOPER,
        title=_title(culprit, blocker, share),
        scope=StallScope.CALLBACK,
        state=StallState.ENDED,
        severity=severity_of(duration_ns),
        began_wall_ns=began_wall_ns,
        duration_ns=duration_ns,
        threshold_ns=0,
        callback=None,
        task=None,
        scene=None if not blocked.scene else blocked.scene[:_TEXT_MAX],
        cause=Cause.CPU if is_cpu else Cause.UNKNOWN,
        confidence=share if is_cpu and share is not None else 0.0,
        evidence=tuple(_evidence(blocked, stacks, rows, share, duration_ns)),
        advice=None,
        culprit=culprit,
        blocker=blocker,
        holder=None,
        ledger=Ledger(on_cpu_ns=ran_ns),
        samples=seen,
        coverage=coverage,
        dropped_samples=0,
        stacks=stacks,
        threads=tuple(_threads(blocked, own)),
        engine=blocked.tool,
        grade=Grade.WEAK if seen < 2 else Grade.FAIR,
        surroundings=_surroundings(blocked, rows, duration_ns),
    )


def _weighed(
    blocked: Blocked, own: JavaOwnership, duration_ns: int, began_ns: int
) -> tuple[tuple[WeightedStack, ...], float]:
    """Different stacks, the longest first, and the share of the time that they cover. Each holds from its
    moment to the next one's; stacks without a time share it equally."""
    some = [stack for stack in blocked.stacks[:_STACKS_MAX] if stack.frames]
    end_ns = began_ns + duration_ns
    moments = [stack.at_wall_ns for stack in some]
    known = [at for at in moments if at is not None and began_ns <= at <= end_ns]
    timed = bool(some) and len(known) == len(some)
    ends = [*known[1:], end_ns] if timed else []
    weights = (
        [max(until - at, 1) for at, until in zip(known, ends, strict=True)]
        if timed
        else [max(duration_ns // max(len(some), 1), 1)] * len(some)
    )
    held: dict[tuple[object, ...], int] = {}
    for stack, weight in zip(some, weights, strict=True):
        held[stack.frames] = held.get(stack.frames, 0) + weight
    merged = [
        WeightedStack(
            weight_ns=weight,
            truncated=len(frames) > _FRAMES_MAX,
            frames=tuple(own.frame(place) for place in frames[:_FRAMES_MAX]),  # type: ignore[arg-type]
        )
        for frames, weight in held.items()
    ]
    merged.sort(key=lambda stack: -stack.weight_ns)
    covered = sum(weights) / duration_ns if timed and duration_ns else 0.0
    return tuple(merged), min(covered, 1.0)


def culprit_of(stacks: Sequence[WeightedStack]) -> tuple[Culprit | None, Blocker | None]:
    """The innermost own frame that held most of the time, and what it had called."""
    held: dict[tuple[str, str], int] = {}
    for stack in stacks:
        at = next((frame for frame in stack.frames if frame.in_app), None)
        if at is not None:
            place = (at.file, at.qualname)
            held[place] = held.get(place, 0) + stack.weight_ns
    best = max(held, key=lambda place: held[place], default=None)
    for stack in stacks:
        for index, frame in enumerate(stack.frames):
            is_it = (frame.file, frame.qualname) == best if best is not None else index == 0
            if is_it:
                inner = Blocker(call=None, function=stack.frames[0].qualname) if index else None
                return culprit_at(frame), inner
    return None, None


def _title(culprit: Culprit | None, blocker: Blocker | None, share: float | None) -> str:
    what = "blocked"
    if blocker is not None:
        what = f"{blocker.function}()"
    elif share is not None:
        what = "computing" if share >= COMPUTING_SHARE else "waiting" if share <= WAITING_SHARE else what
    if culprit is None:
        return say("title:what-in", what=what, work="the main thread")
    file = culprit.file.rpartition("/")[2]
    place = (
        say("title:place", function=culprit.function, file=file, line=culprit.line)
        if culprit.line
        else f"in {culprit.qualname}"
    )
    return say("title:what", what=what, place=place)


def _evidence(
    blocked: Blocked,
    stacks: Sequence[WeightedStack],
    rows: Sequence[CpuRow],
    share: float | None,
    duration_ns: int,
) -> Iterator[str]:
    if share is None:
        yield say("java-no-cpu")
    else:
        is_waiting = share <= WAITING_SHARE
        code = "java-computed" if share >= COMPUTING_SHARE else "java-waited" if is_waiting else "java-mixed"
        yield say(code, ran=round(share * duration_ns), whole=duration_ns)
    if blocked.is_least:
        yield say("java-least")
    seen = min(len(blocked.stacks), _STACKS_MAX)
    if seen < 2:
        if seen or not blocked.calls:
            yield say("java-one" if seen else "java-none")
    elif len(stacks) == 1:
        yield say("java-same", count=seen)
    else:
        yield say("java-differ", count=seen, different=len(stacks))
    if rows:
        yield say("java-load", busy=_mean([row.busy for row in rows]), app=_mean([row.app for row in rows]))
        waited = _mean([row.io_wait for row in rows])
        if waited >= _IO_SHARE:
            yield say("java-io", share=waited)
    if len(rows) < len(blocked.cpu):
        yield say("java-odd", count=len(blocked.cpu) - len(rows))
    for note in blocked.notes[:10]:
        yield note[:_TEXT_MAX]


def _of_its_time(blocked: Blocked, began_ns: int, duration_ns: int) -> list[CpuRow]:
    """The CPU rows of the stall's time. The original also prints those of hours before, some with thousands
    of percent."""
    return [
        row
        for row in blocked.cpu
        if began_ns <= row.at_wall_ns <= began_ns + duration_ns
        and all(0 <= percent <= 100 for percent in (row.busy, row.app, row.io_wait))
    ]


def _mean(percents: Sequence[int]) -> float:
    return sum(percents) / len(percents) / 100


def _surroundings(blocked: Blocked, rows: Sequence[CpuRow], duration_ns: int) -> Surroundings | None:
    free = blocked.memory_free_bytes
    if not rows and free is None:
        return None
    cores = min(blocked.device.cores, 1_024)
    return Surroundings(
        window_ns=duration_ns,
        system_cpu=_mean([row.busy for row in rows]) if rows else None,
        process_cpu=_mean([row.app for row in rows]) * cores if rows and cores else None,
        memory_available_bytes=None if free is None else min(free, _MEMORY_MAX),
    )


def _threads(blocked: Blocked, own: JavaOwnership) -> Iterator[ThreadView]:
    for number, thread in enumerate(blocked.threads[:_THREADS_MAX], 1):
        yield ThreadView(
            tid=number,
            name=thread.name[:_TEXT_MAX],
            state="",
            holds_gil=False,
            waits_for_gil=False,
            frames=tuple(own.frame(place) for place in thread.frames[:_FRAMES_MAX]),
        )
