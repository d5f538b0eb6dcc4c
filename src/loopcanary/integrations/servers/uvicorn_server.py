"""uvicorn: when its application is loaded, and when it ends by the signal that has asked it to.

When it has served its last request it puts back what handled the signal before, and raises it anew. Where
nothing did, that is the process's end, and no atexit runs: what is known so far is stored before.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import FunctionType
from typing import Any

from loopcanary.integrations.patches import Patches
from loopcanary.integrations.telling import Telling


def patch(patches: Patches, tell: Telling) -> None:
    """The module is imported. uvicorn before 0.29 raises no signal anew."""
    patches.wrap(sys.modules["uvicorn.config"].Config, "load", tell.around_making)
    server: Any = sys.modules["uvicorn.server"]
    patches.wrap(server.Server, "capture_signals", lambda original: _around(original, tell.ends))


def _around(
    original: FunctionType, ends: Callable[[], object]
) -> Callable[[Any], AbstractContextManager[None]]:
    @contextmanager
    def capture_signals(self: Any) -> Iterator[None]:
        before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        with original(self):
            yield
            captured = getattr(self, "_captured_signals", ())
            if any(before.get(number) is signal.SIG_DFL for number in captured):
                ends()

    return capture_signals
