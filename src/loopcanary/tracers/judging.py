"""What tracers saw, as issues: with the stalls that the engine saw on the same thread at the same time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from loopcanary.model import Clock, Culprit, LagIssue, Session, Stall, WeightedStack
from loopcanary.model.issues.lags import Handled, IdleLag, InputLag, Jank, LateFrame
from loopcanary.model.stall import Cause
from loopcanary.protocols.kinds import kind_of
from loopcanary.tracers.desk import Told
from loopcanary.tracers.frames import SceneSlice
from loopcanary.tracers.idle import RawIdleLag
from loopcanary.tracers.input import RawInputLag
from loopcanary.tracers.reported import completed

Raw = SceneSlice | RawInputLag | RawIdleLag

_STALLS_MAX = 20
_STACKS_MAX = 8
_BEFORE_MAX = 20
_Lag = TypeVar("_Lag", Jank, InputLag, IdleLag)


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

    def complete(self, told: Told, stalls: Sequence[Stall], serial: int | None = None) -> LagIssue:
        """The issue that a third party's tracer reported, with the stalls in it; `serial` as of `judge`.
        Raises what reading a broken object raises."""
        begin = told.issue.began_wall_ns
        thread = told.issue.thread or told.thread
        found = [
            (overlap, stall)
            for stall in stalls
            if stall.thread == thread
            and (overlap := _overlap(stall, begin, begin + told.issue.duration_ns)) > 0
        ]
        found.sort(key=lambda pair: -pair[0])
        self._serial = self._serial + 1 if serial is None else serial
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
        part = bad.slice
        in_frames = [self._during(own, frame.start_ns, frame.shown_ns) for frame in bad.worst]
        of_worst = _distinct(stall for found in in_frames for stall in found)
        all_of_it = _distinct([*of_worst, *self._during(own, part.began_ns, part.ended_ns)])
        main = of_worst[0] if of_worst else None
        jank = Jank(
            **self._shared("jank", bad, part.began_ns, part.ended_ns, main),
            figures=part.figures,
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
            stalls=_ids(all_of_it),
            stacks=_stacks(of_worst),
        )
        return _worded(jank, main)

    def _input(self, lag: RawInputLag, own: list[Stall]) -> InputLag:
        found = self._during(own, lag.arrived_ns, lag.end_ns)
        main = found[0] if found else None
        late = InputLag(
            **self._shared("input", lag, lag.arrived_ns, lag.end_ns, main),
            event=lag.name,
            queued_ns=lag.begin_ns - lag.arrived_ns,
            before=self._before(lag, own),
            cause=main.cause if main is not None else Cause.UNKNOWN,
            stalls=_ids(found),
            stacks=_stacks(found),
        )
        return _worded(late, main)

    def _shared(self, kind: str, raw: Raw, begin_ns: int, end_ns: int, main: Stall | None) -> dict[str, Any]:
        """Values of the fields that all kinds have; `main`: the stall that held most of the issue's time."""
        return {
            "id": f"{self.session.id}-{kind}-{self._serial}",
            "fingerprint": "",
            "title": "",
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
        shared = self._shared("idle", lag, lag.begin_ns, lag.end_ns, main)
        if lag.runs > 1:  # it is told again and again as it grows, and stays one issue
            shared["id"] = f"{self.session.id}-idle-{lag.begin_ns // 1_000}"
        idle = IdleLag(
            **shared,
            handler=lag.name,
            runs=lag.runs,
            cause=main.cause if main is not None else Cause.CPU if lag.runs > 1 else Cause.UNKNOWN,
            stalls=_ids(found),
            stacks=_stacks(found),
        )
        return _worded(idle, None)  # the bug is the handler, whatever was slow in it


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


def _worded(lag: _Lag, main: Stall | None) -> _Lag:
    """With what its kind says. `main`: the stall that held most of it."""
    kind = kind_of(lag)
    advice = kind.advice(lag) or (main.advice if main is not None else None)
    lag = replace(lag, title=kind.title(lag) or "", advice=advice)
    return replace(lag, fingerprint=kind.fingerprint(lag, main))
