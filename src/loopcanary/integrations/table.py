"""The libraries that are known: one line a library.

A file of this part is loaded when the program has imported what it is for, and not before: this table is read
at the start of every watched interpreter.
"""

from __future__ import annotations


class Library:
    """What a library's file awaits, and where it is. The file's `patch(patches, tell)` does the rest."""

    __slots__ = ("awaits", "brings_work", "module", "name")

    def __init__(self, name: str, awaits: str, *, brings_work: bool = False, file: str | None = None) -> None:
        """`file`: where it is not called as the library is. `brings_work`: it runs requests or jobs on
        threads that have no loop, so that the engine is wanted without one."""
        self.name = name
        self.awaits = awaits
        self.brings_work = brings_work
        self.module = f"loopcanary.integrations.{file or name}"


LIBRARIES = (
    Library("starlette", "starlette.routing"),
    Library("fastapi", "fastapi.routing"),
    Library("aiohttp", "aiohttp.web_app"),
    Library("tornado", "tornado.web"),
    Library("quart", "quart.app"),
    Library("twisted_web", "twisted.web.server"),
    Library("uvicorn_h11", "uvicorn.protocols.http.h11_impl", file="uvicorn"),
    Library("uvicorn_httptools", "uvicorn.protocols.http.httptools_impl", file="uvicorn"),
    Library("uvicorn_server", "uvicorn.server"),
    Library("hypercorn", "hypercorn.protocol.h2"),
    Library("granian", "granian._futures"),
    Library("flask", "flask.app", brings_work=True),
    Library("django_wsgi", "django.core.handlers.wsgi", brings_work=True),
    Library("django_routes", "django.core.handlers.base"),
    Library("wsgiref", "wsgiref.handlers", brings_work=True),
    Library("werkzeug", "werkzeug.serving", brings_work=True),
    Library("gunicorn", "gunicorn.workers.base", brings_work=True),
    Library("waitress", "waitress.server", brings_work=True),
    Library("cheroot", "cheroot.wsgi", brings_work=True),
    Library("celery", "celery.signals", brings_work=True),
    Library("dramatiq", "dramatiq.worker", brings_work=True),
    Library("rq", "rq.worker", brings_work=True),
)

AWAITED = tuple(library.awaits for library in LIBRARIES if library.brings_work)
"""Imports that bring requests or jobs to threads without a loop."""
