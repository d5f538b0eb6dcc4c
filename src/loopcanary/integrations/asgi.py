"""The middleware for ASGI applications whose routes loopcanary does not find by itself.

app = SceneMiddleware(app)
app = SceneMiddleware(app, name=lambda scope: my_router.name_of(scope["path"]))
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import loopcanary
from loopcanary.integrations.paths import Paths

_Scope = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
_Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
_Application = Callable[[_Scope, _Receive, _Send], Awaitable[None]]


class SceneMiddleware:
    """Each request of the application has a scene. What the application itself enters stands above it."""

    def __init__(self, app: _Application, name: Callable[[_Scope], str | None] | None = None) -> None:
        """`name(scope)` gives a request's scene, None for none; where it is not given, it is the path without
        what looks like a value. An exception of it is the program's own, and comes through."""
        self.app = app
        self._name = name or self._by_path
        self._paths = Paths()

    async def __call__(self, scope: _Scope, receive: _Receive, send: _Send) -> None:
        """A request, a web socket, or the application's life."""
        name = self._name(scope) if scope["type"] in ("http", "websocket") else None
        if name is None:
            await self.app(scope, receive, send)
        else:
            with loopcanary.scene(name):
                await self.app(scope, receive, send)

    def _by_path(self, scope: _Scope) -> str:
        return self._paths.name(scope.get("method", "WS"), scope["path"])
