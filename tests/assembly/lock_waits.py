"""A third party's kind of issue and the tracer that reports it: all that there is of the plugin."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from loopcanary.document.makers import facts, line, name, part
from loopcanary.document.parts import Block, Facts
from loopcanary.model import IssueKind
from loopcanary.model.issues.facts import ReportedFacts
from loopcanary.protocols.kinds import Kind
from loopcanary.protocols.plugins import TracerPort

MS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LockWait(ReportedFacts):
    """A wait for a lock."""

    kind = IssueKind("lock-wait")

    lock: str
    waited_ns: int
    holders: tuple[str, ...] = ()

    @property
    def searched(self) -> tuple[str, ...]:
        return (self.lock, *self.holders)


class LockWaitKind(Kind[LockWait]):
    """What people read of it, and what is the same for the same bug."""

    issue_class = LockWait
    words = "lock wait"
    list_words = "lock waits"

    def evidence(self, issue: LockWait) -> Iterator[str]:
        yield f"waited {issue.waited_ns // MS} ms for {issue.lock}"

    def figures(self, issue: LockWait) -> Facts:
        return facts(("lock", name(issue.lock)), ("waited", f"{issue.waited_ns // MS} ms"))

    def parts(self, issue: LockWait) -> tuple[Block, ...]:
        return part("held by", [line(name(one)) for one in issue.holders])

    def identity(self, issue: LockWait) -> tuple[str, ...]:
        return (f"lock={issue.lock}",)


class LockTracer:
    """Reports each wait of `held`."""

    name = "locks"

    def init(self, desk: TracerPort) -> None:
        self._desk = desk

    def start(self) -> None:
        _RUNNING.append(self)

    def stop(self) -> None:
        _RUNNING.clear()

    def waited(self, lock: str, began_wall_ns: int, waited_ns: int) -> bool:
        holders = (threading.current_thread().name,)
        return self._desk.report(
            LockWait(
                began_wall_ns=began_wall_ns,
                duration_ns=waited_ns,
                lock=lock,
                waited_ns=waited_ns,
                holders=holders,
            )
        )


_RUNNING: list[LockTracer] = []


@contextmanager
def held(lock: threading.Lock, name: str) -> Iterator[bool]:
    """With the lock; whether the wait for it was reported."""
    wall_ns, begin_ns = time.time_ns(), time.monotonic_ns()
    with lock:
        took_ns = time.monotonic_ns() - begin_ns
        yield any(tracer.waited(name, wall_ns, took_ns) for tracer in _RUNNING)
