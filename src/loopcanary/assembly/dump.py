"""Another process, read from outside, with the facts of its flight file if it has one."""

from __future__ import annotations

import os
import platform
import time
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from loopcanary import flight, outside
from loopcanary.assembly import native_module
from loopcanary.assembly.health import runs
from loopcanary.diagnosis.samples.syscalls import syscall_name
from loopcanary.engine.flight_place import SHARED_MEMORY, in_memory
from loopcanary.engine.recorder import SUFFIX
from loopcanary.facts import program_of_command_line
from loopcanary.model.outside import LaneSight, ProcessSight, ThreadSight, Unseen
from loopcanary.model.units import format_duration
from loopcanary.outside.memory import mapped_files, mappings, openable
from loopcanary.source_text import FileSources
from loopcanary.store.recovery.forensics import session_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from loopcanary._native import Native
    from loopcanary.flight import FlightFile
    from loopcanary.model import Frame
    from loopcanary.model.live import LaneReading

_SOURCE_FRAMES = 16
_CLOCK_SLACK_NS = 1_000_000_000
"""The kernel gives starts of processes in hundredths of seconds; no edit of a program is that fast."""


def look_at(pid: int, *, with_tasks: bool = False) -> ProcessSight | Unseen:
    """The process with this number as it is now, on request with its tasks, or why it cannot be seen."""
    try:
        return _look_at(pid, with_tasks)
    except outside.OutsideError as error:
        is_refused = isinstance(error, outside.NotReadableError)
        kept = _kept_look(pid) if is_refused and with_tasks else None
        return kept or Unseen(why=str(error), is_refused=is_refused)


def _kept_look(pid: int) -> ProcessSight | None:
    """What its own watchdog saw of its tasks; None: the process is not watched, or was not looked at."""
    for path in in_memory(SHARED_MEMORY):
        with suppress(flight.FlightError, OSError), flight.FlightFile.open(path) as file:
            header = file.header
            look = file.look() if header.pid == pid and runs(file, header) else None
            if look is None:
                continue
            session = session_of(file.facts(), header)
            age = format_duration(max(time.monotonic_ns() - look.began_ns, 0))
            told = f"; one task of each of {look.groups} groups is told" if look.groups else ""
            return ProcessSight(
                pid=pid,
                command=session.name,
                executable="",
                python=session.python.removeprefix("CPython "),
                age_ns=max(time.monotonic_ns() - header.started_ns, 0),
                taken_wall_ns=header.clock.to_wall_ns(look.began_ns),
                threads=(),
                tasks=look.sights(),
                session=session.id,
                notes=(f"its memory may not be read: this is what its watchdog saw {age} ago{told}",),
            )
    return None


def _look_at(pid: int, with_tasks: bool) -> ProcessSight:
    process = outside.Process.of(pid)
    with outside.Memory(process) as memory:
        reader = native()
        interpreter = outside.locate(process, memory, reader.OUTSIDE_SYMBOLS)
        found = outside.look(process, interpreter, reader, name_of_syscall(), with_tasks=with_tasks)
    session, lanes, notes = _lanes(process)
    threads = tuple(_with_lane(thread, lanes) for thread in found.threads)
    words = process.words()
    age_ns, now_wall_ns = process.age_ns(), time.time_ns()
    stacks = [thread.stack.frames for thread in threads if thread.stack is not None]
    stacks += dict.fromkeys(task.frames for task in found.tasks or ())
    return ProcessSight(
        pid=pid,
        command=program_of_command_line(words) if words else "",
        executable=process.executable(),
        python=interpreter.version,
        age_ns=age_ns,
        taken_wall_ns=now_wall_ns,
        threads=threads,
        tasks=found.tasks,
        session=session,
        notes=(*found.notes, *notes),
        sources={} if age_ns is None else _sources(stacks, now_wall_ns - age_ns),
    )


def _sources(stacks: Iterable[tuple[Frame, ...]], began_wall_ns: int) -> dict[tuple[str, int], str]:
    """Lines of inner frames. A file that was written since the process began may not be what it runs."""
    reader = FileSources()
    places = {
        (frame.file, frame.line)
        for frames in stacks
        for frame in frames[:_SOURCE_FRAMES]
        if frame.file.startswith("/")
    }
    lines = {}
    for file, line in places:
        text = reader.read(file)
        if text is None or not 0 < line <= len(text.lines):
            continue
        if text.modified_wall_ns is None or text.modified_wall_ns < began_wall_ns + _CLOCK_SLACK_NS:
            lines[file, line] = text.lines[line - 1]
    return lines


def native() -> Native:
    """The extension of the interpreter that runs this command; it knows the layouts of all versions."""
    try:
        return native_module()
    except ImportError as error:
        raise outside.OutsideError(
            f"reading a process needs loopcanary's native extension, which is not available: {error}"
        ) from None


def name_of_syscall() -> Callable[[int], str | None]:
    """Names of this machine's system calls."""
    machine = platform.machine()
    return lambda number: syscall_name(number, machine)


# ---- lanes --------------------------------------------------------------------------------------------


def _with_lane(thread: ThreadSight, lanes: dict[int, tuple[str, LaneSight]]) -> ThreadSight:
    if thread.tid not in lanes:
        return thread
    name, lane = lanes[thread.tid]
    return replace(thread, name=name or thread.name, lane=lane)


def _lanes(
    process: outside.Process,
) -> tuple[str | None, dict[int, tuple[str, LaneSight]], tuple[str, ...]]:
    """Session of the engine in the process, and lanes by thread; the file is the one that it has mapped."""
    try:
        path = flight_file_of(process)
        if path is None:
            return None, {}, ()
        with flight.FlightFile.open(path) as opened:
            session = os.path.basename(path).removesuffix(SUFFIX).split("-", 2)[-1]  # noqa: PTH119
            return session, _lanes_of(process, opened), ()
    except outside.OutsideError as error:
        return None, {}, (str(error),)
    except (flight.FlightError, OSError) as error:
        return None, {}, (f"it is watched by loopcanary, but its flight file cannot be read: {error}",)


def flight_file_of(process: outside.Process) -> str | None:
    """Path of the flight file that the process has mapped, as it can be opened from here; None: it has none.
    FlightError and OSError where it cannot be read; OutsideError where it has no name."""
    for file in mapped_files(mappings(process)):
        if not file.name.endswith(SUFFIX):
            continue
        path = openable(process, file)
        if path is None:
            raise outside.OutsideError(
                "it is watched by loopcanary, but its flight file was deleted or cannot be reached"
            )
        with flight.FlightFile.open(path) as opened:
            if opened.header.pid == process.inner_pid():
                return path  # another is a parent's, seen through a fork
    return None


def _lanes_of(process: outside.Process, file: FlightFile) -> dict[int, tuple[str, LaneSight]]:
    now_ns = time.monotonic_ns()
    tids = process.inner_tids()
    lanes, _ = file.glances().look()
    return {
        tids[lane.totals.tid]: (lane.totals.thread_name, _lane(lane, now_ns))
        for lane in lanes
        if lane.totals.closed_ns is None and lane.totals.tid in tids
    }


def _lane(lane: LaneReading, now_ns: int) -> LaneSight:
    since_ns = lane.callback_since_ns if lane.callback_since_ns is not None else lane.turn_since_ns
    work = lane.work if lane.in_stall else None
    return LaneSight(
        loop_kind=lane.totals.loop_kind,
        threshold_ns=lane.threshold_ns,
        busy_ns=None if since_ns is None else max(now_ns - since_ns, 0),
        callback=None if work is None else work.callback,
        task=None if work is None else work.task,
        scene=None if work is None else work.scene,
    )
