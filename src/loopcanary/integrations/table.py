"""The libraries that are known: one line a library.

A file of this part is loaded when the program has imported what it is for, and not before: this table is read
at the start of every watched interpreter.
"""

from __future__ import annotations


class Library:
    """What a library's file awaits, and where it is. The file's `patch(patches, tell)` does the rest."""

    __slots__ = ("awaits", "brings_work", "module", "name")

    def __init__(self, name: str, awaits: str, file: str, *, brings_work: bool = False) -> None:
        """`file`: below this package. `brings_work`: it runs requests or jobs on threads that have no loop,
        so that the engine is wanted without one."""
        self.name = name
        self.awaits = awaits
        self.brings_work = brings_work
        self.module = f"loopcanary.integrations.{file}"


LIBRARIES = (
    Library("starlette", "starlette.routing", "web.starlette"),
    Library("fastapi", "fastapi.routing", "web.fastapi"),
    Library("aiohttp", "aiohttp.web_app", "web.aiohttp"),
    Library("tornado", "tornado.web", "web.tornado"),
    Library("quart", "quart.app", "web.quart"),
    Library("twisted_web", "twisted.web.server", "web.twisted"),
    Library("uvicorn_h11", "uvicorn.protocols.http.h11_impl", "servers.uvicorn"),
    Library("uvicorn_httptools", "uvicorn.protocols.http.httptools_impl", "servers.uvicorn"),
    Library("uvicorn_server", "uvicorn.server", "servers.uvicorn_server"),
    Library("hypercorn", "hypercorn.protocol.h2", "servers.hypercorn"),
    Library("granian", "granian._futures", "servers.granian"),
    Library("flask", "flask.app", "web.flask", brings_work=True),
    Library("django_wsgi", "django.core.handlers.wsgi", "web.django_wsgi", brings_work=True),
    Library("django_routes", "django.core.handlers.base", "web.django_routes"),
    Library("wsgiref", "wsgiref.handlers", "servers.wsgiref", brings_work=True),
    Library("werkzeug", "werkzeug.serving", "servers.werkzeug", brings_work=True),
    Library("gunicorn", "gunicorn.workers.base", "servers.gunicorn", brings_work=True),
    Library("waitress", "waitress.server", "servers.waitress", brings_work=True),
    Library("cheroot", "cheroot.wsgi", "servers.cheroot", brings_work=True),
    Library("celery", "celery.signals", "tasks.celery", brings_work=True),
    Library("dramatiq", "dramatiq.worker", "tasks.dramatiq", brings_work=True),
    Library("rq", "rq.worker", "tasks.rq", brings_work=True),
)

AWAITED = tuple(library.awaits for library in LIBRARIES if library.brings_work)
"""Imports that bring requests or jobs to threads without a loop."""
