"""The middleware for WSGI applications and servers that loopcanary does not find by itself.

app = RequestMiddleware(app)
app = RequestMiddleware(app, threshold="2s", name=lambda environ: environ.get("my.route"))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any

import loopcanary
from loopcanary.integrations.telling import Paths

_Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
_NAME = "WSGI request"


class RequestMiddleware:
    """Times each call of a WSGI application as a piece of work on its thread, with a scene.

    Only the call is timed: not iterators that the server reads later, nor slow clients.
    """

    def __init__(
        self,
        app: _Application,
        *,
        threshold: str | timedelta = "1s",
        name: Callable[[dict[str, Any]], str | None] | None = None,
    ) -> None:
        """Wraps the application.

        Args:
            app: the application.
            threshold: a longer request is a stall: "2s", or a timedelta.
            name: gets the WSGI environ, returns the scene, or None for none. Default: the path without
                segments that look like values.

        Raises:
            ValueError: the threshold is not a duration.
        """
        loopcanary.watch(_NAME, threshold)
        self.app = app
        self._threshold = threshold
        self._name = name or self._by_path
        self._paths = Paths()

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        name = self._name(environ)
        with loopcanary.watch(_NAME, self._threshold):
            if name is None:
                return self.app(environ, start_response)
            with loopcanary.scene(name):
                return self.app(environ, start_response)

    def _by_path(self, environ: dict[str, Any]) -> str:
        return self._paths.name(environ.get("REQUEST_METHOD"), environ.get("PATH_INFO") or "/")
