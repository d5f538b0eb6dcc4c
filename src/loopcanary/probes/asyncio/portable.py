"""The asyncio probe of the portable engine: learns which loops run, and where.

Only `run_forever` is patched; the engine brackets each loop's wait by itself.
"""

from __future__ import annotations

import sys
from functools import wraps
from typing import TYPE_CHECKING, Any

from loopcanary.probes import ImportWatch, PatchingProbe

if TYPE_CHECKING:
    from loopcanary.protocols.loops import PortableSide


class PortableAsyncioProbe(PatchingProbe):
    """Reports to the engine when loops begin and end to run, on the loop's thread."""

    kind = "asyncio"
    loops = ("asyncio.base_events", "BaseEventLoop")
    """Module and name of the class that has `run_forever`."""
    _engine: PortableSide

    def __init__(self, *sides: Any) -> None:
        super().__init__(*sides)
        self._watches = [ImportWatch(self.loops[0], lambda: self._contain(self._patch_class))]

    def _patch_class(self) -> None:
        module, name = self.loops
        loop_type = getattr(sys.modules[module], name)
        original = loop_type.run_forever
        runs, stopped = self._engine.runs, self._engine.stopped

        @wraps(original)
        def run_forever(self: Any) -> None:
            runs(self)
            try:
                original(self)
            finally:
                stopped(self)

        self._patches.lay(loop_type, "run_forever", run_forever)
        self._see_running()

    def _see_running(self) -> None:
        """A loop that runs already, on this thread."""
        running = sys.modules["asyncio.events"]._get_running_loop()
        if running is not None:
            self._engine.runs(running)


class PortableUvloopProbe(PortableAsyncioProbe):
    """As asyncio's, of uvloop's own class."""

    kind = "uvloop"
    loops = ("uvloop", "Loop")

    def _see_running(self) -> None:
        """Asyncio's probe sees it."""
