"""RQ: a job is a piece of work, named by its function."""

from __future__ import annotations

import sys
from types import FunctionType
from typing import Any

from loopcanary.integrations.patches import Patches
from loopcanary.integrations.telling import Telling


def patch(patches: Patches, tell: Telling) -> None:
    """The module is imported; which class defines the method differs between versions."""

    def around(original: FunctionType) -> Any:
        def perform_job(self: Any, job: Any, *args: Any, **kwargs: Any) -> Any:
            with tell.task(_name(job)):
                return original(self, job, *args, **kwargs)

        return perform_job

    for owner in sys.modules["rq.worker"].Worker.__mro__:
        patches.wrap(owner, "perform_job", around)


def _name(job: Any) -> str:
    try:
        return str(job.func_name)
    except Exception:  # noqa: BLE001 - a job that cannot be read; RQ will say so
        return "RQ job"
