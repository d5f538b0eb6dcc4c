"""Has another process watched, or not watched any longer: the side of who asks."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from loopcanary import outside
from loopcanary.assembly.dump import name_of_syscall
from loopcanary.model.outside import Attached, Detached, Unseen
from loopcanary.outside import Interpreter, Process
from loopcanary.outside.mailbox import Mailbox
from loopcanary.outside.processes import (
    HangsError,
    NotReachableError,
    NotReadableError,
    OutsideError,
    read_task,
)
from loopcanary.outside.remote import FIRST_VERSION, nudge, script, send

_LOOK_EVERY_S = 0.01
_NUDGE_AFTER_S = 0.1
_NUDGE_EVERY_S = 0.5
_PACKAGE = Path(__file__).resolve().parents[1]


def attach(pid: int, settings: dict[str, Any], timeout_s: float) -> Attached | Unseen:
    """Has the process watched, with these settings of `install`. Each step may take `timeout_s`."""
    try:
        reached = _Reached.of(pid, timeout_s)
        loaded = reached.ask("load")
        found = reached.ask("install", settings)
    except OutsideError as error:
        return _unseen(error)
    return Attached(
        pid=pid,
        was_watched=bool(found.get("already")),
        is_running=bool(found.get("running")),
        engine=str(found.get("engine", "")),
        session=str(found.get("session", "")),
        store=str(found.get("store", "")),
        native_problem=str(loaded["native"]) if loaded.get("native") else None,
    )


def detach(pid: int, timeout_s: float) -> Detached | Unseen:
    """Ends the watching of the process: every patch is taken back, what was seen is stored."""
    try:
        found = _Reached.of(pid, timeout_s).ask("stop", only_if_loaded=True)
    except OutsideError as error:
        return _unseen(error)
    return Detached(pid=pid, was_watched=bool(found.get("was_watched")))


def _unseen(error: OutsideError) -> Unseen:
    return Unseen(
        why=str(error),
        is_refused=isinstance(error, NotReadableError | NotReachableError),
        hangs=isinstance(error, HangsError),
    )


class _Reached:
    """A process that can be asked to do something."""

    def __init__(self, process: Process, interpreter: Interpreter, timeout_s: float) -> None:
        self._process = process
        self._interpreter = interpreter
        self._timeout_s = timeout_s
        self._syscall_name = name_of_syscall()

    @classmethod
    def of(cls, pid: int, timeout_s: float) -> _Reached:
        """Raises OutsideError where it cannot."""
        process = outside.Process.of(pid)
        with outside.Memory(process) as memory:
            interpreter = outside.locate(process, memory, ())
        if interpreter.minor < FIRST_VERSION:
            raise NotReachableError(
                f"process {pid} runs CPython {interpreter.version}; running processes can be watched from"
                " 3.14 on. Start it with `loopcanary run` or with LOOPCANARY=1 in its environment;"
                f" `loopcanary dump {pid}` shows what it does now"
            )
        return cls(process, interpreter, timeout_s)

    def ask(
        self, step: str, settings: dict[str, Any] | None = None, *, only_if_loaded: bool = False
    ) -> dict[str, Any]:
        """Has it done, and gives the answer. Raises OutsideError: refused, failed, or not in time."""
        text = script(str(_PACKAGE), only_if_loaded=only_if_loaded)
        box = Mailbox(self._process, text, {"step": step, "settings": settings or {}})
        try:
            send(self._process, self._interpreter, box.script)
            answer = self._wait(box)
            if answer is None and box.withdraw():
                raise HangsError(self._why("did not respond", "the request was withdrawn"))
            if answer is None:
                answer = self._wait(box)
        finally:
            box.close()
        if answer is None:
            raise HangsError(self._why(f"began but did not finish ({step})", "it may still do so"))
        self._check(answer)
        return answer

    def _why(self, what: str, then: str) -> str:
        return f"process {self._process.pid} {what} within {self._timeout_s:g} s; {then}"

    def _wait(self, box: Mailbox) -> dict[str, Any] | None:
        """The answer; None where there is none in time. An idle loop is woken, so that it looks."""
        began = time.monotonic()
        next_nudge = began + _NUDGE_AFTER_S
        while (now := time.monotonic()) < began + self._timeout_s:
            answer = box.answer()
            if answer is not None:
                return answer
            self._process.check()
            if now >= next_nudge and not box.is_taken:
                self._nudge()
                next_nudge = now + _NUDGE_EVERY_S
            time.sleep(_LOOK_EVERY_S)
        return box.answer()

    def _nudge(self) -> None:
        task = read_task(self._process, self._process.pid)
        call = None if task is None or task.call is None else self._syscall_name(task.call[0])
        nudge(self._process, call)

    def _check(self, answer: dict[str, Any]) -> None:
        pid = self._process.pid
        if "refused" in answer:
            raise NotReachableError(f"process {pid}: {answer['refused']}")
        if "error" not in answer:
            return
        problem = f"process {pid} cannot be watched: {answer['error']}"
        if answer.get("kind") in ("ConfigError", "StoreError"):
            raise NotReachableError(problem)
        raise OutsideError(problem)
