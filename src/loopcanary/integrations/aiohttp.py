"""aiohttp.web: the resource that the router has found. One task serves all requests of a connection, so that
the scene has to end with each."""

from __future__ import annotations

import sys
from types import FunctionType
from typing import Any

from loopcanary.integrations.patches import Patches
from loopcanary.integrations.telling import Telling, route_name


def patch(patches: Patches, tell: Telling) -> None:
    """The module is imported."""
    application: Any = sys.modules["aiohttp.web_app"].Application
    router: Any = sys.modules["aiohttp.web_urldispatcher"].UrlDispatcher
    if patches.wrap(application, "_handle", lambda original: _around_request(original, tell)):
        patches.wrap(router, "resolve", lambda original: _around_search(original, tell))


def _around_request(original: FunctionType, tell: Telling) -> Any:
    async def _handle(self: Any, request: Any) -> Any:
        with tell.keep_scene():
            return await original(self, request)

    return _handle


def _around_search(original: FunctionType, tell: Telling) -> Any:
    async def resolve(self: Any, request: Any) -> Any:
        found = await original(self, request)
        tell.scene(_name, request, found)
        return found

    return resolve


def _name(request: Any, found: Any) -> str | None:
    resource = found.route.resource
    return None if resource is None else route_name(request.method, resource.canonical)
