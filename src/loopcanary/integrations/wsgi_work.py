"""A call of a WSGI application as a piece of work.

The call only: what an iterator of the answer computes, and what a slow client takes, are not in it.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any

from loopcanary.integrations.telling import Telling

NAME = "WSGI request"


def around_application(original: FunctionType, name: str, tell: Telling) -> Any:
    """The `__call__` of a class of applications, timed."""

    def __call__(self: Any, environ: Any, start_response: Any) -> Any:  # noqa: N807 - it is one
        with tell.request(name):
            return original(self, environ, start_response)

    return __call__


class Timed:
    """An application, timed. Has the attributes of the one it calls."""

    def __init__(self, application: Any, tell: Telling) -> None:
        self.__wrapped__ = application
        self._tell = tell

    def __call__(self, environ: Any, start_response: Any) -> Any:
        with self._tell.request(NAME):
            return self.__wrapped__(environ, start_response)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__wrapped__, name)


def timed(application: Any, tell: Telling) -> Any:
    """The application, timed once."""
    return (
        application
        if isinstance(application, Timed) or not callable(application)
        else Timed(application, tell)
    )
