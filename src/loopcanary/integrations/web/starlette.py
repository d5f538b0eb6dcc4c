"""Starlette: the route that handles a request, with the mounts that led to it."""

from __future__ import annotations

import sys
from contextvars import ContextVar
from types import FunctionType
from typing import Any

from loopcanary.integrations.patches import Patches
from loopcanary.integrations.telling import Telling, known_names, route_name

_WEBSOCKET = "websocket"
_mounted: ContextVar[str] = ContextVar("loopcanary_mounted", default="")
"""Where the mounts have led so far."""


def patch(patches: Patches, tell: Telling) -> None:
    routing: Any = sys.modules["starlette.routing"]
    patches.wrap(routing.Route, "handle", lambda original: around_route(original, tell))
    patches.wrap(routing.WebSocketRoute, "handle", lambda original: around_route(original, tell))
    patches.wrap(routing.Mount, "handle", lambda original: _around_mount(original, tell))


def around_route(original: FunctionType, tell: Telling) -> Any:
    """A route's `handle`, with the route as scene."""
    # Each request comes here, and pays for the code and data that have gone cold since the one before: a name
    # that is known is found without a call of Python's.
    scene_now, enter_scene, back_to_scene = tell.scene_now, tell.enter_scene, tell.back_to_scene
    known, mounted_now = known_names.get, _mounted.get

    async def handle(self: Any, scope: Any, receive: Any, send: Any) -> None:
        before = scene_now()
        try:
            name = None
            if "fastapi" not in scope:
                name = known((scope.get("method"), mounted_now() + self.path_format))
            enter_scene(name or _name(self, scope))
        except Exception:  # noqa: BLE001, S110 - other versions of other people's objects
            pass
        try:
            await original(self, scope, receive, send)
        finally:
            back_to_scene(before)

    return handle if tell.engine is None else tell.engine.asgi_route(original, handle, known_names, _mounted)


def _around_mount(original: FunctionType, tell: Telling) -> Any:
    async def handle(self: Any, scope: Any, receive: Any, send: Any) -> None:
        before = _mounted.get()
        _mounted.set(before + str(getattr(self, "path", "")))
        try:
            with tell.keep_scene():
                tell.scene(_name_of_mount, scope)  # what is mounted may have no routes, such as static files
                await original(self, scope, receive, send)
        finally:
            _mounted.set(before)

    return handle


def _name(route: Any, scope: Any) -> str:
    # FastAPI's routers share routes between places: the place that was chosen is in the scope.
    fastapi = scope.get("fastapi")
    if fastapi is not None:
        chosen = fastapi.get("effective_route_context")
        if chosen is not None and chosen.original_route is route:
            route = chosen
    return route_name(_method(scope), _mounted.get() + route.path_format)


def _name_of_mount(scope: Any) -> str | None:
    if scope["type"] not in ("http", _WEBSOCKET):
        return None
    return route_name(_method(scope), f"{_mounted.get()}/...")


def _method(scope: Any) -> object:
    return "WS" if scope["type"] == _WEBSOCKET else scope["method"]
