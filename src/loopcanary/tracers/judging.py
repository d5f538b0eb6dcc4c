"""What tracers saw, as issues: with the stalls that the engine saw on the same thread at the same time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

try:
    from _blake2 import blake2s  # what hashlib gives, without OpenSSL: two megabytes in a watched process
except ImportError:  # an interpreter that hashes in another way
    from hashlib import blake2s

from loopcanary.model.issues.lags import Handled, IdleLag, InputLag, Jank, LateFrame
from loopcanary.model.stall import Cause
from loopcanary.model.units import format_duration
from loopcanary.tracers.frames import SceneSlice
from loopcanary.tracers.idle import RawIdleLag
from loopcanary.tracers.input import RawInputLag
from loopcanary.tracers.reported import completed

if TYPE_CHECKING:
    from loopcanary.model import Clock, Culprit, LagIssue, Session, Stall, WeightedStack
    from loopcanary.tracers.desk import Told

Raw = SceneSlice | RawInputLag | RawIdleLag

_STALLS_MAX = 20
_STACKS_MAX = 8
_BEFORE_MAX = 20
_MANY_SMALL = (
    "no callback was long enough to be sampled: "
    "a lower threshold (such as 40ms) brings the stacks of such frames"
)
_IDLE_ADVICE = (
    "do idle work in small pieces, each of a few milliseconds, and ask for the next one when it is done"
)
_SPIN_ADVICE = "wait for what is to happen (an event, a timer) instead of asking again and again"


class Judging:
    """Makes issues of one session. Drain thread."""

    def __init__(self, session: Session, clock: Clock, last_serial: int = 0) -> None:
        """`last_serial`: that issues of this session may have been given."""
        self.session = session
        self.clock = clock
        self._serial = last_serial

    def judge(
        self, raw: Raw, stalls: Sequence[Stall], serial: int | None = None
    ) -> Jank | InputLag | IdleLag:
        """The issue. `stalls`: what the engine has seen lately, on any thread. `serial`: its number in the
        session; None: the next one."""
        self._serial = self._serial + 1 if serial is None else serial
        own = [stall for stall in stalls if stall.thread == raw.thread]
        if isinstance(raw, SceneSlice):
            return self._jank(raw, own)
        if isinstance(raw, RawInputLag):
            return self._input(raw, own)
        return self._idle(raw, own)

    def complete(self, told: Told, stalls: Sequence[Stall]) -> LagIssue:
        """The issue that a third party's tracer reported, with the stalls in it. Raises what reading a broken
        object raises."""
        begin = told.issue.began_wall_ns
        thread = told.issue.thread or told.thread
        found = [
            (overlap, stall)
            for stall in stalls
            if stall.thread == thread
            and (overlap := _overlap(stall, begin, begin + told.issue.duration_ns)) > 0
        ]
        found.sort(key=lambda pair: -pair[0])
        self._serial += 1
        return completed(told, self.session, self._serial, [stall for _, stall in found])

    def _wall(self, ns: int) -> int:
        return self.clock.to_wall_ns(ns)

    def _during(self, stalls: Iterable[Stall], begin_ns: int, end_ns: int) -> list[Stall]:
        """The stalls that lasted in this time, the longest part first."""
        begin, end = self._wall(begin_ns), self._wall(end_ns)
        found = [(_overlap(stall, begin, end), stall) for stall in stalls]
        found.sort(key=lambda pair: -pair[0])
        return [stall for overlap, stall in found if overlap > 0]

    def _jank(self, bad: SceneSlice, own: list[Stall]) -> Jank:
        part, figures = bad.slice, bad.slice.figures
        in_frames = [self._during(own, frame.start_ns, frame.shown_ns) for frame in bad.worst]
        of_worst = _distinct(stall for found in in_frames for stall in found)
        all_of_it = _distinct([*of_worst, *self._during(own, part.began_ns, part.ended_ns)])
        main = of_worst[0] if of_worst else None
        where = f" in {bad.scene}" if bad.scene else ""
        return Jank(
            **self._shared("jank", bad, part.began_ns, part.ended_ns, main),
            fingerprint=lag_fingerprint("jank", bad.loop, main, bad.scene),
            title=f"{figures.fps:.0f} of {figures.refresh_hz:.0f} fps{where}, "
            f"worst frame {format_duration(figures.worst_ns)}{_at(main)}",
            figures=figures,
            worst=tuple(
                LateFrame(
                    began_wall_ns=self._wall(frame.start_ns),
                    duration_ns=frame.shown_ns - frame.start_ns,
                    dropped=frame.dropped,
                    stalls=_ids(found),
                )
                for frame, found in zip(bad.worst, in_frames, strict=True)
            ),
            cause=main.cause if main is not None else Cause.UNKNOWN,
            advice=main.advice if main is not None else _MANY_SMALL,
            stalls=_ids(all_of_it),
            stacks=_stacks(of_worst),
        )

    def _input(self, lag: RawInputLag, own: list[Stall]) -> InputLag:
        found = self._during(own, lag.arrived_ns, lag.end_ns)
        main = found[0] if found else None
        return InputLag(
            **self._shared("input", lag, lag.arrived_ns, lag.end_ns, main),
            fingerprint=lag_fingerprint("input", lag.loop, main, lag.name),
            title=f"{lag.name} was handled after {format_duration(lag.end_ns - lag.arrived_ns)}{_at(main)}",
            event=lag.name,
            queued_ns=lag.begin_ns - lag.arrived_ns,
            before=self._before(lag, own),
            cause=main.cause if main is not None else Cause.UNKNOWN,
            advice=main.advice if main is not None else None,
            stalls=_ids(found),
            stacks=_stacks(found),
        )

    def _shared(self, kind: str, raw: Raw, begin_ns: int, end_ns: int, main: Stall | None) -> dict[str, Any]:
        """What all kinds have; `main`: the stall that held most of it."""
        return {
            "id": f"{self.session.id}-{kind}-{self._serial}",
            "session": self.session.id,
            "pid": self.session.pid,
            "thread": raw.thread,
            "loop": raw.loop,
            "scene": raw.scene,
            "began_wall_ns": self._wall(begin_ns),
            "duration_ns": end_ns - begin_ns,
            "culprit": _culprit(main),
        }

    def _before(self, lag: RawInputLag, own: list[Stall]) -> tuple[Handled, ...]:
        """Stalls and other events between the arrival and the begin of the handling, oldest first."""
        begin, end = self._wall(lag.arrived_ns), self._wall(lag.begin_ns)
        done = [
            (
                stall.began_wall_ns,
                Handled(
                    name=stall.callback or stall.title,
                    duration_ns=_overlap(stall, begin, end),
                    culprit=stall.culprit,
                    stall=stall.id,
                ),
            )
            for stall in own
            if _overlap(stall, begin, end) > 0
        ]
        for event in lag.before:
            event_begin, event_end = self._wall(event.begin_ns), self._wall(event.end_ns)
            duration_ns = min(event_end, end) - max(event_begin, begin)
            if duration_ns > 0:
                done.append((event_begin, Handled(name=event.name, duration_ns=duration_ns)))
        done.sort(key=lambda pair: pair[0])
        return tuple(handled for _, handled in done[-_BEFORE_MAX:])

    def _idle(self, lag: RawIdleLag, own: list[Stall]) -> IdleLag:
        found = self._during(own, lag.begin_ns, lag.end_ns)
        main = found[0] if found else None
        took = format_duration(lag.end_ns - lag.begin_ns)
        title = f"idle work {lag.name} took {took}{_at(main)}"
        if lag.runs > 1:
            title = f"{lag.name} asked for itself {lag.runs:,} times in a row: no wait for {took}"
        return IdleLag(
            **self._shared("idle", lag, lag.begin_ns, lag.end_ns, main),
            fingerprint=lag_fingerprint("idle", lag.loop, None, lag.name),
            title=title,
            handler=lag.name,
            runs=lag.runs,
            cause=main.cause if main is not None else Cause.CPU if lag.runs > 1 else Cause.UNKNOWN,
            advice=_SPIN_ADVICE if lag.runs > 1 else _IDLE_ADVICE,
            stalls=_ids(found),
            stacks=_stacks(found),
        )


def _overlap(stall: Stall, begin_wall_ns: int, end_wall_ns: int) -> int:
    end = stall.began_wall_ns + stall.duration_ns
    return min(end, end_wall_ns) - max(stall.began_wall_ns, begin_wall_ns)


def _distinct(stalls: Iterable[Stall]) -> list[Stall]:
    return list({stall.id: stall for stall in stalls}.values())


def _ids(stalls: Iterable[Stall]) -> tuple[str, ...]:
    return tuple(stall.id for stall in stalls)[:_STALLS_MAX]


def _stacks(stalls: Iterable[Stall]) -> tuple[WeightedStack, ...]:
    stacks = [stack for stall in stalls for stack in stall.stacks]
    return tuple(sorted(stacks, key=lambda stack: -stack.weight_ns)[:_STACKS_MAX])


def _culprit(main: Stall | None) -> Culprit | None:
    return None if main is None else main.culprit


def _at(main: Stall | None) -> str:
    culprit = _culprit(main)
    if culprit is None:
        return ""
    return f": {culprit.qualname} ({culprit.file.rpartition('/')[2]}:{culprit.line})"


def lag_fingerprint(kind: str, loop: str, main: Stall | None, name: str | None) -> str:
    """The kind and twelve hexadecimal digits: of the bug behind it, or else of the place. `main`: the stall
    that held most of it; `name`: the scene of frames, an event, an idle handler."""
    parts = (kind, main.fingerprint) if main is not None else (kind, loop, name or "")
    digest = blake2s("\0".join(parts).encode("utf-8", "replace")).hexdigest()
    return f"{kind}:{digest[:12]}"
