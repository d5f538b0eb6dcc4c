"""Calls of a running program, traced for a while: an errand has it note them, and they are read where they
lie. For other tools' formats they are one stall of each thread, which has nothing but its traced calls."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing

from loopcanary import flight, outside
from loopcanary.assembly import native_module
from loopcanary.assembly.errands.asking import Errand, watched
from loopcanary.assembly.store import config_of, paths_of
from loopcanary.diagnosis.code.ownership import Owner, Ownership
from loopcanary.exporters import Exported, Program
from loopcanary.flight.beside.calls import CallsCopy, Window
from loopcanary.flight.beside.merged_calls import CallsFollowed
from loopcanary.model import Cause, Ledger, Severity, Stall, StallScope, StallState
from loopcanary.model.calls import Recording, ThreadCalls
from loopcanary.model.outside import Unseen
from loopcanary.model.units import format_duration
from loopcanary.outside.processes import HangsError, NotReachableError, NotReadableError, OutsideError
from loopcanary.store.recovery.forensics import session_of

_LOOK_FIRST_S = 0.01
_LOOK_AGAIN_S = 0.1
"""A thread that calls all the time has room for the calls of some 0.3 s."""
_GRACE_S = 30.0
"""How much longer the program traces if this command is killed."""


def record(
    pid: int,
    methods: Sequence[str],
    seconds: float,
    timeout_s: float,
    wait: Callable[[float], bool],
    *,
    each: bool = False,
) -> Recording | Unseen:
    """Has the process trace its calls, and reads them.

    Args:
        pid: Its number.
        methods: Which, as the setting `methods` has them.
        seconds: For how long.
        timeout_s: How long it may take to begin.
        wait: Waits for so many seconds, again and again; False: that is enough.
        each: With each call by itself.
    """
    try:
        process, path = watched(pid)
        with flight.FlightFile.open(path) as file, Errand(process, path) as errand:
            notices = _begun(errand, methods, seconds, timeout_s)
            began_ns, began_wall_ns = time.monotonic_ns(), time.time_ns()
            with closing(_followed(file, began_ns)) as followed:
                end_ns, is_over = _follow(process, followed, began_ns + int(seconds * 1e9), wait)
                window = Window(begin_ns=began_ns, end_ns=end_ns, last_look_ns=end_ns)
                copies = followed.copies(window) if each else {}
                errand.end()
                threads = _threads(file, followed, copies)
            return Recording(
                session=session_of(file.facts(), file.header),
                began_wall_ns=began_wall_ns,
                duration_ns=end_ns - began_ns,
                threads=threads,
                notices=(*notices, f"process {pid} has ended") if is_over else notices,
            )
    except OutsideError as error:
        is_refused = isinstance(error, NotReadableError | NotReachableError)
        return Unseen(why=str(error), is_refused=is_refused, hangs=isinstance(error, HangsError))
    except (flight.FlightError, OSError) as error:
        return Unseen(why=f"the flight file of process {pid} cannot be read: {error}", is_refused=True)


def _begun(errand: Errand, methods: Sequence[str], seconds: float, timeout_s: float) -> tuple[str, ...]:
    """Has the process trace; what it says to that. OutsideError: it does not, or not in time."""
    answer = errand.ask({"methods": list(methods), "seconds": seconds + _GRACE_S}, timeout_s)
    if "already" in answer:
        errand.is_done()
        chosen = ",".join(map(str, answer["already"]))
        return (f"it was started with --methods {chosen}, and these are traced",)
    if answer.get("error"):
        errand.is_done()
        raise NotReachableError(f"process {errand.pid} traces no methods: {answer['error']}")
    return (str(answer["notice"]),) if answer.get("notice") else ()


def _follow(
    process: outside.Process, followed: CallsFollowed, until_ns: int, wait: Callable[[float], bool]
) -> tuple[int, bool]:
    """When it was over, and whether the process was, too."""
    goes_on, is_over = True, False
    while True:
        now_ns = time.monotonic_ns()
        followed.look(now_ns)
        if now_ns >= until_ns or not goes_on:
            return now_ns, is_over
        # One that is open can be read when it is removed: a keeper does so as soon as its process ends.
        look_s = _LOOK_AGAIN_S if followed.has_files else _LOOK_FIRST_S
        goes_on = wait(min(look_s, (until_ns - now_ns) / 1e9))
        try:
            process.check()
        except OutsideError:
            goes_on, is_over = False, True


def _followed(file: flight.FlightFile, begin_ns: int) -> CallsFollowed:
    return CallsFollowed(file.name, lambda: file.tick_clock, native_module().call_tree, begin_ns)


def _threads(
    file: flight.FlightFile, followed: CallsFollowed, copies: dict[int, CallsCopy]
) -> tuple[ThreadCalls, ...]:
    facts = file.facts()
    owners = Ownership(paths_of(facts), config_of(facts).concern)
    lanes = {lane.tid: lane for lane in file.lanes()}
    return tuple(
        ThreadCalls(
            tid=tid,
            thread=(lanes[tid].thread_name if tid in lanes else "")
            or ("MainThread" if tid == file.header.pid else f"thread {tid}"),
            loop=lanes[tid].loop_kind if tid in lanes else "",
            calls=calls,
            each=each,
        )
        for tid, calls, each in followed.threads(copies, lambda code: owners.of(code) is Owner.OWN)
    )


def exported(recording: Recording) -> Exported:
    """The input of an exporter."""
    session = recording.session
    return Exported(
        stalls=_stalls(recording),
        origin_wall_ns=recording.began_wall_ns,
        each_call={_id(recording, thread): thread.each for thread in recording.threads},
        programs={session.id: Program(name=session.name, host=session.host, python=session.python)},
    )


def _id(recording: Recording, thread: ThreadCalls) -> str:
    return f"{recording.session.id}-calls-{thread.tid}"


def _stalls(recording: Recording) -> Iterator[Stall]:
    for thread in recording.threads:
        yield Stall(
            id=_id(recording, thread),
            fingerprint="",
            session=recording.session.id,
            pid=recording.session.pid,
            thread=thread.thread,
            loop=thread.loop or "thread",
            title=f"calls in {format_duration(recording.duration_ns)}",
            scope=StallScope.TURN,
            state=StallState.ENDED,
            severity=Severity.STALL,
            began_wall_ns=recording.began_wall_ns,
            duration_ns=recording.duration_ns,
            threshold_ns=0,
            callback=None,
            task=None,
            scene=None,
            cause=Cause.UNKNOWN,
            confidence=0.0,
            evidence=(),
            advice=None,
            culprit=None,
            blocker=None,
            holder=None,
            ledger=Ledger(),
            samples=0,
            coverage=0.0,
            dropped_samples=0,
            stacks=(),
            calls=thread.calls,
        )
