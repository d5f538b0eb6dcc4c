"""The uvloop probe: runs, turns and callbacks seen in the calls by which uvloop's shared object asks libuv,
the system and CPython (native/probes/uvloop/hooks.c). Nothing of uvloop's own is touched.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from loopcanary._native import Native

KIND = "uvloop"


class UvloopProbe:
    """Watches all loops of uvloop's, made before or after, in any thread."""

    kind = KIND

    def __init__(
        self,
        native: Native,
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
        handle = getattr(loop, "Handle", None)
        if not isinstance(handle, type):
            self._notes = ("uvloop: this version has other handles than those known; it is not watched",)
            return
        self._native.learn_asyncio()
        running_loop = sys.modules["asyncio.events"]._get_running_loop
        runs, waits, callbacks = self._native.hook_uvloop(handle, running_loop, self._tell)
        self._notes = tuple(_missing(runs, waits, callbacks))

    def _tell(self) -> None:
        self._contain(self._loop_seen)


def _missing(runs: bool, waits: Sequence[str], callbacks: bool) -> Sequence[str]:
    """What the hooks do not reach in this build of uvloop, in words for people."""
    if not callbacks:
        return ("uvloop: its callbacks cannot be hooked in this build; they are not seen",)
    if not runs or not waits:
        return ("uvloop: libuv's waits cannot be hooked in this build; each callback counts as a turn",)
    return ()
