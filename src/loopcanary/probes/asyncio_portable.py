"""The asyncio probe of the portable engine: learns which loops run, and where.

Only `BaseEventLoop.run_forever` is patched; the engine brackets each loop's wait by itself.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

from loopcanary.probes.on_import import ImportWatch


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
        self._watch = ImportWatch("asyncio.base_events", lambda: contain(self._patch))
        self._original: Callable[[Any], None] | None = None
        self._replacement: Callable[[Any], None] | None = None

    def install(self) -> None:
        """Patches asyncio, now or when it is imported. Idempotent."""
        if self._original is None:
            self._watch.cancel()
            self._watch.start()

    def uninstall(self) -> None:
        """Takes the patch back, if it is still ours."""
        self._watch.cancel()
        if self._original is not None:
            loop_type = sys.modules["asyncio.base_events"].BaseEventLoop
            if loop_type.__dict__.get("run_forever") is self._replacement:
                loop_type.run_forever = self._original
            self._original = self._replacement = None

    def _patch(self) -> None:
        loop_type = sys.modules["asyncio.base_events"].BaseEventLoop
        original = loop_type.__dict__["run_forever"]
        runs, stopped = self._runs, self._stopped

        @wraps(original)
        def run_forever(self: Any) -> None:
            runs(self)
            try:
                original(self)
            finally:
                stopped(self)

        self._original, self._replacement = original, run_forever
        loop_type.run_forever = run_forever
        running = sys.modules["asyncio.events"]._get_running_loop()
        if running is not None:
            runs(running)
