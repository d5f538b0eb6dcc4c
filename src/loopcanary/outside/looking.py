"""One look at another process: its threads with their frames, what each waits for, who holds the GIL."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from loopcanary.late_dataclass import dataclass
from loopcanary.model.outside import StackReading, TaskSight, ThreadSight, WaitedLock
from loopcanary.model.stack import Stack
from loopcanary.model.waiting import SHARED_LOCK, SHARED_RLOCK, SHARED_SEMAPHORE, LockProof, LockView
from loopcanary.outside.descriptors import target_of
from loopcanary.outside.frames import frame_of
from loopcanary.outside.interpreter import Interpreter
from loopcanary.outside.processes import OutsideError, Process, Task, read_task
from loopcanary.outside.tasks import read_tasks

if TYPE_CHECKING:
    from loopcanary._native import Native

# As native/core/watchdog/frame_source.h and flight_format.h have them.
_READINGS: Final = {0: StackReading.READ, 1: StackReading.NO_FRAMES, 2: StackReading.MOVING}
_GIL_HELD_BY_SELF: Final = 2
_LOCK_KINDS: Final = {
    1: "lock",
    2: "RLock",
    3: "import lock",
    4: "end of a thread",
    6: SHARED_LOCK,
    7: SHARED_RLOCK,
    8: SHARED_SEMAPHORE,
}
_PROOFS: Final = {1: LockProof.OWNER, 2: LockProof.WITH}
_FUTEX_COMMAND: Final = 127
_FUTEX_WAITS: Final = (0, 9)
"""FUTEX_WAIT, FUTEX_WAIT_BITSET: the fourth argument is a time; 0: there is none."""
_FUTEX_CALLS: Final = frozenset({"futex", "futex_wait", "futex_waitv"})

SyscallName = Callable[[int], str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The threads that were read: the main one first, then by number, those without Python last."""

    threads: tuple[ThreadSight, ...]
    tasks: tuple[TaskSight, ...] | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _PythonThread:
    """A thread state, by its address, and its thread."""

    state: int
    interpreter: int
    """Counted from the main one, 0."""


def look(
    process: Process,
    interpreter: Interpreter,
    walker: Native,
    syscall_name: SyscallName,
    *,
    with_tasks: bool = False,
) -> Found:
    """Reads all threads once, each at a moment of its own, and on request the tasks of asyncio, without
    stopping anything. OutsideError: the process ends meanwhile, or its CPython cannot be read."""
    try:
        handle = walker.outside_open(process.pid, interpreter.version_hex, interpreter.addresses)
    except RuntimeError as error:
        process.check()
        raise OutsideError(f"process {process.pid} (CPython {interpreter.version}): {error}") from None
    states = _states(walker.outside_threads(handle))
    tids = process.inner_tids()
    process.check()
    if states and not any(tid in tids for tid in states):
        raise OutsideError(
            f"the CPython {interpreter.version} of process {process.pid} is built otherwise than the releases"
            " of its version are, and cannot be read"
        )
    eyes = _Eyes(process, walker, handle, syscall_name, tids)
    sights = [eyes.see(tid, states.get(inner)) for inner, tid in sorted(tids.items())]
    tasks, notes = read_tasks(process, walker, handle) if with_tasks and states else (None, ())
    process.check()
    seen = [sight for sight in sights if sight is not None]
    seen.sort(key=lambda sight: (sight.interpreter is None, not sight.is_main, sight.tid))
    if not states:
        notes = ("no interpreter runs in it now: it is starting or ending",)
    elif with_tasks and any(python.interpreter for python in states.values()):
        notes += ("it has several interpreters: only the tasks of the main one are read",)
    return Found(threads=tuple(seen), tasks=tasks, notes=notes)


def _states(found: list[tuple[int, int, int]]) -> dict[int, _PythonThread]:
    """Thread states by inner thread number. A thread may have several, of several interpreters: the latest
    comes first, the main one last."""
    interpreters = list(dict.fromkeys(interpreter for interpreter, _, _ in found))[::-1]
    numbers = {interpreter: number for number, interpreter in enumerate(interpreters)}
    return {
        tid: _PythonThread(state=state, interpreter=numbers[interpreter]) for interpreter, state, tid in found
    }


class _Eyes:
    """The facts that all threads of one look share."""

    def __init__(
        self,
        process: Process,
        walker: Native,
        handle: Any,
        syscall_name: SyscallName,
        tids: Mapping[int, int],
    ) -> None:
        self._process = process
        self._walker = walker
        self._handle = handle
        self._syscall_name = syscall_name
        self._tids = tids
        self._program = process.text("comm").removesuffix("\n")

    def see(self, tid: int, python: _PythonThread | None) -> ThreadSight | None:
        """The thread; None: it has ended."""
        # The frames first, and the call that it is in right behind: they change fastest.
        result, truncated, inner_cut, frames = (
            (1, False, False, ())
            if python is None
            else self._walker.outside_stack(self._handle, python.state)
        )
        task = read_task(self._process, tid)
        if task is None:
            return None
        name = self._call_name(task)
        holds, waits, lock = (False, False, None) if python is None else self._held(python, task, name)
        return ThreadSight(
            tid=tid,
            name=self._thread_name(task, python),
            is_main=tid == self._process.pid,
            state="R" if task.is_running else task.state,
            syscall=name,
            target=target_of(self._process, name, task.call[1]) if name and task.call else None,
            interpreter=None if python is None else python.interpreter,
            reading=_READINGS.get(result, StackReading.UNREADABLE),
            stack=_stack(frames, truncated, inner_cut) if frames else None,
            holds_gil=holds,
            waits_for_gil=waits,
            lock=lock,
        )

    def _thread_name(self, task: Task, python: _PythonThread | None) -> str:
        known = "" if python is None else self._walker.outside_name(self._handle, python.state, task.tid)
        return known or (task.name if task.name != self._program else "")

    def _call_name(self, task: Task) -> str | None:
        if task.call is None:
            return None
        return self._syscall_name(task.call[0]) or f"system call {task.call[0]}"

    def _held(
        self, python: _PythonThread, task: Task, call: str | None
    ) -> tuple[bool, bool, WaitedLock | None]:
        """Whether it holds the GIL or waits for it, and the lock that it waits for."""
        state, _, low, high = self._walker.outside_gil(self._handle, python.state)
        if state == _GIL_HELD_BY_SELF:
            return True, False, None
        if call not in _FUTEX_CALLS or task.call is None:
            return False, False, None
        futex, operation, _, until = task.call[1][:4]
        if low <= futex < high:
            return False, True, None
        has_timeout = operation & _FUTEX_COMMAND in _FUTEX_WAITS and until != 0
        return False, False, self._lock(python, futex, has_timeout)

    def _lock(self, python: _PythonThread, futex: int, has_timeout: bool) -> WaitedLock | None:
        kind, proof, holder, module = self._walker.outside_lock(self._handle, python.state, futex)
        if kind not in _LOCK_KINDS:
            return None
        return WaitedLock(
            view=LockView(kind=_LOCK_KINDS[kind], proof=_PROOFS.get(proof, LockProof.NONE)),
            holder_tid=self._tids.get(holder) if proof in _PROOFS else None,
            module=module or None,
            has_timeout=has_timeout,
        )


def _stack(frames: Sequence[tuple[Any, ...]], truncated: bool, inner_cut: bool) -> Stack:
    return Stack(frames=tuple(map(frame_of, frames)), truncated=truncated, inner_cut=inner_cut)
