"""dramatiq: a message is a piece of work, named by its actor."""

from __future__ import annotations

import sys
from types import FunctionType
from typing import Any

from loopcanary.integrations.patches import Patches
from loopcanary.integrations.telling import Telling


def patch(patches: Patches, tell: Telling) -> None:
    def around(original: FunctionType) -> Any:
        def process_message(self: Any, message: Any) -> Any:
            with tell.task(str(getattr(message, "actor_name", "dramatiq message"))):
                return original(self, message)

        return process_message

    patches.wrap(sys.modules["dramatiq.worker"]._WorkerThread, "process_message", around)  # noqa: SLF001 - the place
