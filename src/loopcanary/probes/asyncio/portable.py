"""The asyncio probe of the portable engine: learns which loops run, and where.

Only `run_forever` is patched, of asyncio's loops and of uvloop's; the engine brackets each loop's wait by
itself.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial, wraps
from typing import Any

from loopcanary.probes.on_import import ImportWatch

_LOOPS = (("asyncio.base_events", "BaseEventLoop"), ("uvloop", "Loop"))


class PortableAsyncioProbe:
    """Tells `runs(loop)` and `stopped(loop)`, on the loop's thread. Neither raises."""

    kind = "asyncio"

    def __init__(
        self,
        runs: Callable[[Any], None],
        stopped: Callable[[Any], None],
        contain: Callable[[Callable[[], None]], object],
    ) -> None:
        """`contain` calls a function, and nothing that it raises gets out."""
        self._runs = runs
        self._stopped = stopped
        self._watches = [
            ImportWatch(module, partial(contain, partial(self._patch, module, name)))
            for module, name in _LOOPS
        ]
        self._laid: list[tuple[type, Any, Any]] = []
        """Class, its own `run_forever` or None where it has inherited one, ours."""

    def install(self) -> None:
        """Patches asyncio, now or when it is imported. Idempotent."""
        if not self._laid:
            for watch in self._watches:
                watch.cancel()
                watch.start()

    def uninstall(self) -> None:
        """Takes the patches back that are still ours."""
        for watch in self._watches:
            watch.cancel()
        laid, self._laid = self._laid, []
        for loop_type, original, replacement in laid:
            if loop_type.__dict__.get("run_forever") is not replacement:
                continue
            if original is None:
                del loop_type.run_forever  # type: ignore[attr-defined]
            else:
                loop_type.run_forever = original  # type: ignore[attr-defined]

    def _patch(self, module: str, name: str) -> None:
        loop_type = getattr(sys.modules[module], name)
        original = loop_type.run_forever
        runs, stopped = self._runs, self._stopped

        @wraps(original)
        def run_forever(self: Any) -> None:
            runs(self)
            try:
                original(self)
            finally:
                stopped(self)

        self._laid.append((loop_type, loop_type.__dict__.get("run_forever"), run_forever))
        loop_type.run_forever = run_forever
        if module == "asyncio.base_events":
            running = sys.modules["asyncio.events"]._get_running_loop()
            if running is not None:
                runs(running)
