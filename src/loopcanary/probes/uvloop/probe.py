"""The uvloop probe: runs, turns and callbacks seen in the calls by which uvloop's shared object asks libuv,
the system and CPython (native/probes/uvloop/hooks.c). Nothing of uvloop's own is touched.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from loopcanary.probes import PatchingProbe

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loopcanary._native import Native

KIND = "uvloop"


class UvloopProbe(PatchingProbe):
    """Watches all loops of uvloop's, made before or after, in any thread."""

    kind = KIND

    _engine: Native

    def _patch(self) -> None:
        loop = sys.modules["uvloop.loop"]
        handle = getattr(loop, "Handle", None)
        if not isinstance(handle, type):
            self._notes.append("uvloop: this version has other handles than those known; it is not watched")
            return
        self._engine.learn_asyncio()
        running_loop = sys.modules["asyncio.events"]._get_running_loop
        runs, waits, callbacks = self._engine.hook_uvloop(handle, running_loop, self._tell)
        self._notes.extend(_missing(runs, waits, callbacks))

    def _take_back(self) -> None:
        self._engine.unhook_uvloop()

    def _tell(self) -> None:
        self._contain(self._loop_seen)


def _missing(runs: bool, waits: Sequence[str], callbacks: bool) -> Sequence[str]:
    """What the hooks do not reach in this build of uvloop, in words for people."""
    if not callbacks:
        return ("uvloop: its callbacks cannot be hooked in this build; they are not seen",)
    if not runs or not waits:
        return ("uvloop: libuv's waits cannot be hooked in this build; each callback counts as a turn",)
    return ()
