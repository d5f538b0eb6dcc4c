"""The uvloop probe: runs, turns and callbacks seen in the calls by which uvloop's shared object asks libuv,
the system and CPython (native/module/uvloop_hooks.c). Nothing of uvloop's own is touched.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from loopcanary.probes.asyncio.spin import name_of, task_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import CodeType, ModuleType

    from loopcanary.protocols import Tracers

KIND = "uvloop"


class UvloopProbe:
    """Watches all loops of uvloop's, made before or after, in any thread."""

    kind = KIND

    def __init__(
        self,
        native: ModuleType,
        loop_seen: Callable[[], None],
        contain: Callable[[Callable[[], None]], object],
    ) -> None:
        """`loop_seen` hears of every loop that runs. `contain` calls a function, and nothing that it raises
        gets out."""
        self._native = native
        self._loop_seen = loop_seen
        self._contain = contain
        self._installed = False
        self._notes: tuple[str, ...] = ()
        self._tracers: Callable[[], Tracers] | None = None

    def use_tracers_when_needed(self, tracers: Callable[[], Tracers]) -> None:
        """Whom to ask for a trace when a loop never waits; most programs need none."""
        self._tracers = tracers

    def install(self) -> None:
        """Hooks uvloop, which is imported. Idempotent."""
        if not self._installed:
            self._installed = True
            self._contain(self._hook)

    def uninstall(self) -> None:
        """Takes back every hook that is still ours."""
        if self._installed:
            self._installed = False
            self._native.unhook_uvloop()

    def notes(self) -> Sequence[str]:
        """What of this uvloop cannot be seen."""
        return self._notes

    def _hook(self) -> None:
        loop = sys.modules["uvloop.loop"]
        handle, timer = getattr(loop, "Handle", None), getattr(loop, "TimerHandle", None)
        if not isinstance(handle, type) or not isinstance(timer, type):
            self._notes = ("uvloop: this version has other handles than those known; it is not watched",)
            return
        self._native.learn_asyncio()
        runs, waits, callbacks = self._native.hook_uvloop(handle, timer, self._tell, self._tell_spin)
        self._notes = tuple(_missing(runs, waits, callbacks))

    def _tell(self) -> None:
        self._contain(self._loop_seen)

    def _tell_spin(self, told: tuple[Any, int, int, int]) -> None:
        callback, begin_ns, end_ns, turns = told
        if self._tracers is not None:
            self._tracers().idle(KIND).spun(_name_of(callback), begin_ns, end_ns, turns)


def _name_of(callback: Any) -> str:
    """As asyncio's. `uvloop.run` puts a coroutine of its own around the program's: what that one awaits."""
    task = task_of(callback)
    coroutine = task.get_coro() if task is not None else None
    run = getattr(sys.modules.get("uvloop"), "run", None)
    if _file_of(getattr(coroutine, "cr_code", None)) == _file_of(getattr(run, "__code__", None)):
        inner = getattr(getattr(coroutine, "cr_await", None), "__qualname__", None)
        if isinstance(inner, str):
            return f"{inner} (task)"
    return name_of(callback)


def _file_of(code: CodeType | None) -> str | None:
    return None if code is None else code.co_filename


def _missing(runs: bool, waits: Sequence[str], callbacks: bool) -> Sequence[str]:
    """What the hooks do not reach in this build of uvloop, in words for people."""
    if not callbacks:
        return (
            "uvloop: its calls of PyContext_Enter cannot be hooked in this build; callbacks are not seen",
        )
    if not runs or not waits:
        return ("uvloop: libuv's waits cannot be hooked in this build; each callback counts as a turn",)
    return ()
