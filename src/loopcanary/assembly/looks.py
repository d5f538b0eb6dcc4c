"""Deadlocks of tasks that the watchdog's looks have found (native/cpython/tasks/look.h), as issues."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from zlib import crc32

from loopcanary.flight import FlightFile
from loopcanary.flight.format import ProcessState
from loopcanary.flight.looks import TaskLook
from loopcanary.model import Config, Frame, LagIssue, Session
from loopcanary.model.circles import behind, task_circles
from loopcanary.model.issues.locks import Deadlock, TaskWait
from loopcanary.model.outside import TaskSight
from loopcanary.model.session import TaskSurvey, WaitingTasks
from loopcanary.model.stack_frame import StackFrame
from loopcanary.tracers.desk import Told
from loopcanary.tracers.reported import completed

_FRAMES_MAX = 20
_UVLOOP = "uvloop"
_THREAD = "MainThread"
Owns = Callable[[str], bool]
"""Whether a file is the program's own code."""


class FoundDeadlocks:
    """Those of one program, each given once."""

    def __init__(self) -> None:
        self._serial = 0
        self._told: set[tuple[tuple[int, int], ...]] = set()

    def are_there(self, file: FlightFile) -> bool:
        """Whether a look has found some that were not asked for."""
        return file.look(after=self._serial, has_circle=True) is not None

    def new(self, file: FlightFile, session: Session, config: Config, owns: Owns) -> Sequence[LagIssue]:
        """Those of the last look that were not given; the same has the same id whoever reads it. None with
        `locks`, whose tracer tells more of them. `file`: the program's flight file, open."""
        look = file.look(after=self._serial, has_circle=True)
        if look is None:
            return ()
        self._serial = look.serial
        return () if config.locks else list(self._issues(look, file, session, owns))

    def _issues(self, look: TaskLook, file: FlightFile, session: Session, owns: Owns) -> Iterator[LagIssue]:
        sights = look.sights()
        for circle in look.circles_of(sights):
            members = [look.reads[number] for number in circle]
            key = tuple(sorted((one.address, one.since_ns or 0) for one in members))
            since_ns = max(one.since_ns or 0 for one in members)
            if key in self._told:
                continue
            self._told.add(key)
            found = Deadlock(
                began_wall_ns=file.header.clock.to_wall_ns(since_ns),
                duration_ns=look.began_ns - since_ns,
                loop=_UVLOOP if any(one.loop_type.startswith(_UVLOOP) for one in members) else "asyncio",
                cycle=tuple(_waits(circle, sights, owns)),
                waiting=sum(sights[number].count for number in behind(circle, sights) - {*circle}),
            )
            told = Told(issue=found, thread=_THREAD, scene=None, told_ns=0)
            with suppress(ValueError):  # the file holds impossible values
                yield completed(told, session, crc32(repr(key).encode()), ())


def _waits(circle: Sequence[int], sights: Sequence[TaskSight], owns: Owns) -> Iterator[TaskWait]:
    """Each lock is known by the task that waits for it."""
    many = len(circle) > 1
    for at, number in enumerate(circle):
        task, wait = sights[number], sights[number].wait
        after, before = sights[circle[(at + 1) % len(circle)]], sights[circle[at - 1]].wait
        is_lock = wait is not None and wait.task is None
        holds = before is not None and before.task is None
        lock = f"asyncio.Lock {at + 1}" if many else "asyncio.Lock"
        held = f"asyncio.Lock {at or len(circle)}" if many else "asyncio.Lock"
        yield TaskWait(
            task=task.name,
            waits_for=lock if is_lock else f"the task {after.name}",
            holds=held if holds else None,
            frames=tuple(_shown(task.frames, owns)),
        )


def _shown(frames: Sequence[Frame], owns: Owns) -> Iterator[StackFrame]:
    """Without what asyncio does there."""
    own = [frame for frame in frames if not f"/{frame.file.rpartition('/')[0]}".endswith("/asyncio")]
    for frame in own[:_FRAMES_MAX]:
        yield StackFrame(
            function=frame.qualname.rpartition(".")[2],
            qualname=frame.qualname,
            file=frame.file,
            line=frame.line,
            in_app=owns(frame.file),
        )


def survey_of(file: FlightFile, owns: Owns) -> TaskSurvey | None:
    """What the last look at the tasks found; None: there was none, or the process ended well and its main
    task had moved since the look before."""
    header, look = file.header, file.look()
    if look is None or (header.state is ProcessState.ENDED and not _main_stands_still(look)):
        return None
    from loopcanary.report.tasks import grouped, wait_words

    clock, sights = header.clock, look.sights()
    groups = []
    for group in grouped(sights, task_circles(sights)):
        one = max((sights[number] for number in group), key=lambda sight: sight.count)
        if one.count == 0:  # it is told for its name only, and counts elsewhere
            continue
        groups.append(
            WaitingTasks(
                count=sum(sights[number].count for number in group),
                name=one.name,
                waits=wait_words(group, sights),
                since_wall_ns=None if one.since_ns is None else clock.to_wall_ns(one.since_ns),
                frames=tuple(_shown(one.frames, owns)),
            )
        )
    return TaskSurvey(taken_wall_ns=clock.to_wall_ns(look.began_ns), tasks=look.tasks, groups=tuple(groups))


def _main_stands_still(look: TaskLook) -> bool:
    return any(sight.is_main and 0 < (sight.since_ns or 0) < look.began_ns for sight in look.sights())
