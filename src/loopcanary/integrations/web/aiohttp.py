"""aiohttp.web: the resource that the router has found. One task serves all requests of a connection, so the
scene ends with each request."""

from __future__ import annotations

import sys
from types import FunctionType
from typing import Any

from loopcanary.integrations.patches import Patches
from loopcanary.integrations.telling import Telling, known_names, route_name


def patch(patches: Patches, tell: Telling) -> None:
    application: Any = sys.modules["aiohttp.web_app"].Application
    router: Any = sys.modules["aiohttp.web_urldispatcher"].UrlDispatcher
    if patches.wrap(application, "_handle", lambda original: _around_request(original, tell)):
        patches.wrap(router, "resolve", lambda original: _around_search(original, tell))


def _around_request(original: FunctionType, tell: Telling) -> Any:
    # Each request comes here: no context manager.
    scene_now, back_to_scene = tell.scene_now, tell.back_to_scene

    async def _handle(self: Any, request: Any) -> Any:
        before = scene_now()
        try:
            return await original(self, request)
        finally:
            back_to_scene(before)

    return _handle


def _around_search(original: FunctionType, tell: Telling) -> Any:
    enter_scene, known = tell.enter_scene, known_names.get

    async def resolve(self: Any, request: Any) -> Any:
        found = await original(self, request)
        try:
            resource = found.route.resource
            if resource is not None:
                method, path = request.method, resource.canonical
                enter_scene(known((method, path)) or route_name(method, path))
        except Exception:  # noqa: BLE001, S110 - other versions of other people's objects
            pass
        return found

    return resolve
