"""Calls of a running program, traced for a while: the side of who asks.

The program is asked by a file beside its flight file and a count in it (native/module/keeper/errands.h), and
answers by another file. What it notes is read where it lies.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Self

from loopcanary import flight, outside
from loopcanary.assembly import native_module
from loopcanary.assembly.dump import flight_file_of
from loopcanary.assembly.store import config_of, paths_of
from loopcanary.diagnosis.code.ownership import Owner, Ownership
from loopcanary.flight.beside.calls import CallsCopy, Window
from loopcanary.flight.beside.merged_calls import CallsFollowed
from loopcanary.model.calls import Recording, ThreadCalls
from loopcanary.model.method_map import ANSWER, ERRAND, ERRAND_ENDS
from loopcanary.model.outside import Unseen
from loopcanary.outside.errors import HangsError, NotReachableError, NotReadableError, OutsideError
from loopcanary.store.recovery.forensics import session_of

_LOOK_EVERY_S = 0.01
_LOOK_AGAIN_S = 0.1
"""A thread that calls all the time has room for the calls of some 0.3 s."""
_GRACE_S = 30.0
"""How much longer the program traces if this command is killed."""
_ANSWER_BYTES = 1 << 16


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
        process = outside.Process.of(pid)
        path = flight_file_of(process)
        if path is None:
            raise NotReachableError(
                f"process {pid} is not watched by loopcanary: start it with `loopcanary run` or with"
                f" LOOPCANARY=1 in its environment, or `loopcanary attach {pid}` (CPython 3.14 or later)"
            )
        with flight.FlightFile.open(path) as file, _Errand(process, path) as errand:
            notices = errand.begin(methods, seconds, timeout_s)
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
        look_s = _LOOK_AGAIN_S if followed.has_files else _LOOK_EVERY_S
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


class _Errand:
    """One errand to one process; its end is said when the block is left."""

    def __init__(self, process: outside.Process, path: str) -> None:
        """`path`: of the flight file. OutsideError where it is not this user's."""
        self._process = process
        self._path = path
        self._id = secrets.token_hex(8)
        self._is_begun = False
        try:
            self._page = native_module().open_keeper(path)
        except ImportError as error:
            raise OutsideError(f"this needs loopcanary's native part, which is not here: {error}") from None
        except ValueError as error:
            raise NotReachableError(f"process {process.pid} cannot be asked: {error}") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.end()
        self._page.close()

    def end(self) -> None:
        """It is over. Idempotent."""
        with suppress(OSError):
            if self._is_begun:
                self._is_begun = False
                flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
                with os.fdopen(os.open(self._path + ERRAND_ENDS, flags, 0o600), "w") as file:
                    file.write(f"{self._id}\n")
                self._page.errand()
        with suppress(OSError):
            if self._read(ANSWER) is not None:
                Path(self._path + ANSWER).unlink()

    def begin(self, methods: Sequence[str], seconds: float, timeout_s: float) -> tuple[str, ...]:
        """Has the process trace; what it says to that. OutsideError: it does not, or not in time."""
        self._is_begun = True
        self._put({"methods": list(methods), "seconds": seconds + _GRACE_S})
        answer = self._answer(timeout_s)
        if answer is None and self._withdrawn():
            self._is_begun = False
        elif answer is None:
            answer = self._answer(timeout_s)
        pid = self._process.pid
        if answer is None:
            raise HangsError(
                f"process {pid} did not begin within {timeout_s:g} s: nothing that is watched works in it,"
                f" or it hangs (`loopcanary dump {pid}` shows what it does)"
            )
        if "already" in answer:
            self._is_begun = False
            chosen = ",".join(map(str, answer["already"]))
            return (f"it was started with --methods {chosen}, and these are traced",)
        if answer.get("error"):
            self._is_begun = False
            raise NotReachableError(f"process {pid} traces no methods: {answer['error']}")
        return (str(answer["notice"]),) if answer.get("notice") else ()

    def _put(self, errand: dict[str, Any]) -> None:
        path = self._path + ERRAND
        made = Path(f"{path}.{self._id}")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(made, flags, 0o600), "w", encoding="utf-8") as file:
            json.dump({"id": self._id, **errand}, file)
        made.replace(path)
        self._page.errand()

    def _withdrawn(self) -> bool:
        """False: the process has taken it meanwhile, or another command's is there."""
        with suppress(OSError):
            if self._read(ERRAND) is not None:
                Path(self._path + ERRAND).unlink()
                return True
        return False

    def _read(self, suffix: str) -> dict[str, Any] | None:
        """What is in a file, if it is about this errand."""
        with suppress(OSError, ValueError, RecursionError), Path(self._path + suffix).open("rb") as file:
            found = json.loads(file.read(_ANSWER_BYTES))
            if isinstance(found, dict) and found.get("id") == self._id:
                return found
        return None

    def _answer(self, timeout_s: float) -> dict[str, Any] | None:
        gives_up = time.monotonic() + timeout_s
        while time.monotonic() < gives_up:
            self._process.check()
            if (answer := self._read(ANSWER)) is not None:
                return answer
            time.sleep(_LOOK_EVERY_S)
        return None
