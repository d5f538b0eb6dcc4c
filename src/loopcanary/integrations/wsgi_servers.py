"""WSGI servers: a call of the application is a piece of work.

The call only: what an iterator of the answer computes, and what a slow client takes, are not in it.
"""

from __future__ import annotations

import sys
from types import FunctionType
from typing import Any

from loopcanary.integrations.telling import Telling
from loopcanary.patches import Patches

_ON_THREADS = frozenset({"gunicorn.workers.sync", "gunicorn.workers.gthread"})
_SERVERS = (
    ("cheroot.wsgi", "Server", "wsgi_app"),
    ("waitress.server", "BaseWSGIServer", "application"),
    ("werkzeug.serving", "BaseWSGIServer", "app"),
)


def patch_servers(patches: Patches, tell: Telling) -> None:
    """Servers that keep the application in an attribute: cheroot, which is CherryPy's, waitress, and that of
    werkzeug, which is Flask's for development. One of the modules is imported; each may be."""
    for module, name, attribute in _SERVERS:
        owner = getattr(sys.modules.get(module), name, None)
        if owner is not None:
            _time_servers(patches, owner, attribute, tell)


def _time_servers(patches: Patches, owner: type, attribute: str, tell: Telling) -> None:
    def around(original: FunctionType) -> Any:
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - it is one
            original(self, *args, **kwargs)
            setattr(self, attribute, _timed(getattr(self, attribute), tell))

        return __init__

    patches.wrap(owner, "__init__", around)


def patch_gunicorn(patches: Patches, tell: Telling) -> None:
    """Workers that serve on threads: sync and gthread. The others run a watched loop."""

    def around(original: FunctionType) -> Any:
        def load_wsgi(self: Any, *args: Any, **kwargs: Any) -> Any:
            tell.starts()  # an import of the application that hangs is to be seen
            result = original(self, *args, **kwargs)
            if any(base.__module__ in _ON_THREADS for base in type(self).__mro__):
                self.wsgi = _timed(getattr(self, "wsgi", None), tell)
            return result

        return load_wsgi

    patches.wrap(sys.modules["gunicorn.workers.base"].Worker, "load_wsgi", around)


def patch_wsgiref(patches: Patches, tell: Telling) -> None:
    """wsgiref, and servers that are built on it, such as Django's runserver."""

    def around(original: FunctionType) -> Any:
        def run(self: Any, application: Any) -> None:
            original(self, _timed(application, tell))

        return run

    patches.wrap(sys.modules["wsgiref.handlers"].BaseHandler, "run", around)


class _Timed:
    """An application, timed. Has the attributes of the one it calls."""

    def __init__(self, application: Any, tell: Telling) -> None:
        self.__wrapped__ = application
        self._tell = tell

    def __call__(self, environ: Any, start_response: Any) -> Any:
        with self._tell.request("WSGI request"):
            return self.__wrapped__(environ, start_response)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__wrapped__, name)


def _timed(application: Any, tell: Telling) -> Any:
    """The application, timed once."""
    return (
        application
        if isinstance(application, _Timed) or not callable(application)
        else _Timed(application, tell)
    )
