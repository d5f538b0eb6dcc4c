"""Tornado: the handler's class; its routes are regular expressions, which are no names."""

from __future__ import annotations

import sys
from types import FunctionType
from typing import Any

from loopcanary.integrations.patches import Patches
from loopcanary.integrations.telling import Telling, route_name


def patch(patches: Patches, tell: Telling) -> None:
    web: Any = sys.modules["tornado.web"]
    patches.wrap(web.RequestHandler, "_execute", lambda original: _around(original, tell))


def _around(original: FunctionType, tell: Telling) -> Any:
    async def _execute(self: Any, *args: Any, **kwargs: Any) -> None:
        with tell.keep_scene():
            tell.scene(_name, self)
            await original(self, *args, **kwargs)

    return _execute


def _name(handler: Any) -> str:
    return route_name(handler.request.method, type(handler).__qualname__)
