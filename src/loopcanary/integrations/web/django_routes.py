"""Django: the route that the resolver has found, on WSGI and ASGI servers."""

from __future__ import annotations

import sys
from types import FunctionType
from typing import Any

from loopcanary.integrations.patches import Patches
from loopcanary.integrations.telling import Telling, route_name


def patch(patches: Patches, tell: Telling) -> None:
    handler: Any = sys.modules["django.core.handlers.base"].BaseHandler
    patches.wrap(handler, "resolve_request", lambda original: _around_search(original, tell))
    # On a WSGI server the scene ends with the work that the request is.
    patches.wrap(handler, "get_response_async", lambda original: _around_request(original, tell))


def _around_search(original: FunctionType, tell: Telling) -> Any:
    def resolve_request(self: Any, request: Any) -> Any:
        found = original(self, request)
        tell.scene(_name, request, found)
        return found

    return resolve_request


def _around_request(original: FunctionType, tell: Telling) -> Any:
    async def get_response_async(self: Any, request: Any) -> Any:
        with tell.keep_scene():
            return await original(self, request)

    return get_response_async


def _name(request: Any, found: Any) -> str:
    return route_name(request.method, f"/{found.route}")
