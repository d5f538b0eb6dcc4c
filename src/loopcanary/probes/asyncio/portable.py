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
        self._laid: tuple[type, Any, Any] | None = None
        """Class, its own `run_forever` or None where it has inherited one, ours."""

    def _take_back(self) -> None:
        laid, self._laid = self._laid, None
        if laid is None or laid[0].__dict__.get("run_forever") is not laid[2]:
            return
        loop_type, original, _ = laid
        if original is None:
            del loop_type.run_forever  # type: ignore[attr-defined]
        else:
            loop_type.run_forever = original  # type: ignore[attr-defined]

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

        self._laid = loop_type, loop_type.__dict__.get("run_forever"), run_forever
        loop_type.run_forever = run_forever
        self._see_running()

    def _see_running(self) -> None:
        """A loop that runs already, on this thread."""
        running = sys.modules["asyncio.events"]._get_running_loop()
        if running is not None:
            self._engine.runs(running)
