"""The middleware for ASGI applications whose routes loopcanary does not find by itself.

app = SceneMiddleware(app)
app = SceneMiddleware(app, name=lambda scope: my_router.name_of(scope["path"]))
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import loopcanary
from loopcanary.integrations.telling import Paths

_Scope = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
_Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
_Application = Callable[[_Scope, _Receive, _Send], Awaitable[None]]


class SceneMiddleware:
    """Gives each request of an ASGI application a scene. A scene that the application enters itself wins."""

    def __init__(self, app: _Application, name: Callable[[_Scope], str | None] | None = None) -> None:
        """Wraps the application.

        Args:
            app: the application.
            name: gets the ASGI scope, returns the request's scene, or None for none. Default: the path
                without segments that look like values. Its exceptions come through.
        """
        self.app = app
        self._name = name or self._by_path
        self._paths = Paths()

    async def __call__(self, scope: _Scope, receive: _Receive, send: _Send) -> None:
        """A request, a web socket, or the application's life."""
        name = self._name(scope) if scope["type"] in ("http", "websocket") else None
        if name is None:
            await self.app(scope, receive, send)
        else:
            with loopcanary.scene(name, of_request=True):
                await self.app(scope, receive, send)

    def _by_path(self, scope: _Scope) -> str:
        return self._paths.name(scope.get("method", "WS"), scope["path"])
