"""twisted.web: the class of the resource that renders itself; a tree of resources has no routes."""

from __future__ import annotations

import sys
from types import FunctionType
from typing import Any

from loopcanary.integrations.patches import Patches
from loopcanary.integrations.telling import Telling, route_name


def patch(patches: Patches, tell: Telling) -> None:
    server: Any = sys.modules["twisted.web.server"]
    patches.wrap(server.Request, "render", lambda original: _around(original, tell))


def _around(original: FunctionType, tell: Telling) -> Any:
    def render(self: Any, resrc: Any) -> Any:
        with tell.keep_scene():
            tell.scene(_name, self, resrc)
            return original(self, resrc)

    return render


def _name(request: Any, resource: Any) -> str:
    return route_name(request.method.decode("ascii"), type(resource).__qualname__)
