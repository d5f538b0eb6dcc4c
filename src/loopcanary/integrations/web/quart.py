"""Quart: Flask's rules, on a loop."""

from __future__ import annotations

import sys
from types import FunctionType
from typing import Any

from loopcanary.integrations.patches import Patches
from loopcanary.integrations.telling import Telling, route_name


def patch(patches: Patches, tell: Telling) -> None:
    quart: Any = sys.modules["quart.app"].Quart
    patches.wrap(quart, "full_dispatch_request", lambda original: _around(original, tell))


def _around(original: FunctionType, tell: Telling) -> Any:
    async def full_dispatch_request(self: Any, *args: Any, **kwargs: Any) -> Any:
        with tell.keep_scene():
            tell.scene(_name)
            return await original(self, *args, **kwargs)

    return full_dispatch_request


def _name() -> str | None:
    request: Any = sys.modules["quart.globals"].request
    rule = request.url_rule
    return None if rule is None else route_name(request.method, rule.rule)
