"""FastAPI: routes of its own kind, which later versions handle without Starlette's."""

from __future__ import annotations

import sys
from typing import Any

from loopcanary.integrations.patches import Patches
from loopcanary.integrations.telling import Telling
from loopcanary.integrations.web.starlette import around_route


def patch(patches: Patches, tell: Telling) -> None:
    """The module is imported; earlier versions define no `handle` here, and Starlette's is the one."""
    routing: Any = sys.modules["fastapi.routing"]
    patches.wrap(routing.APIRoute, "handle", lambda original: around_route(original, tell))
