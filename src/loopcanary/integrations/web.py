"""Web frameworks: where each finds a request's route, which becomes the scene, and what calls the
application.

Each function is called when the modules that it takes from `sys.modules` are imported. Nothing of a library
that the program does not use is loaded.
"""

from __future__ import annotations

import sys
from contextvars import ContextVar
from types import FunctionType
from typing import Any

from loopcanary.integrations.telling import Telling, known_names, route_name
from loopcanary.patches import Patches
from loopcanary.whose_exception import ours

_WEBSOCKET = "websocket"
_mounted: ContextVar[str] = ContextVar("loopcanary_mounted", default="")
"""Where Starlette's mounts have led so far."""


def patch_starlette(patches: Patches, tell: Telling) -> None:
    """The route that handles a request, with the mounts that led to it."""
    routing: Any = sys.modules["starlette.routing"]
    patches.wrap(routing.Route, "handle", lambda original: _around_route(original, tell))
    patches.wrap(routing.WebSocketRoute, "handle", lambda original: _around_route(original, tell))
    patches.wrap(routing.Mount, "handle", lambda original: _around_mount(original, tell))


def patch_fastapi(patches: Patches, tell: Telling) -> None:
    """Later versions handle routes without Starlette's; earlier ones define no `handle` here."""
    routing: Any = sys.modules["fastapi.routing"]
    patches.wrap(routing.APIRoute, "handle", lambda original: _around_route(original, tell))


def _around_route(original: FunctionType, tell: Telling) -> Any:
    # Each request comes here, and pays for the code and data that have gone cold since the one before: a name
    # that is known is found without a call of Python's.
    held_scene, enter_scene, back_to_scene = tell.held_scene, tell.enter_scene, tell.back_to_scene
    known, mounted_now = known_names.get, _mounted.get

    async def handle(self: Any, scope: Any, receive: Any, send: Any) -> None:
        before = held_scene()
        try:
            name = None
            if "fastapi" not in scope:
                name = known((scope.get("method"), mounted_now() + self.path_format))
            enter_scene(name or _name_of_route(self, scope))
        except ours():  # other versions of other people's objects
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


def _name_of_route(route: Any, scope: Any) -> str:
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


def patch_aiohttp(patches: Patches, tell: Telling) -> None:
    """The resource that the router has found. One task serves all requests of a connection: the scene ends
    with each request."""
    # Each request comes here: no context manager.
    held_scene, enter_scene, back_to_scene = tell.held_scene, tell.enter_scene, tell.back_to_scene
    known = known_names.get

    def around_request(original: FunctionType) -> Any:
        async def _handle(self: Any, request: Any) -> Any:
            before = held_scene()
            try:
                return await original(self, request)
            finally:
                back_to_scene(before)

        return _handle

    def around_search(original: FunctionType) -> Any:
        async def resolve(self: Any, request: Any) -> Any:
            found = await original(self, request)
            try:
                resource = found.route.resource
                if resource is not None:
                    method, path = request.method, resource.canonical
                    enter_scene(known((method, path)) or route_name(method, path))
            except ours():  # other versions of other people's objects
                pass
            return found

        return resolve

    if patches.wrap(sys.modules["aiohttp.web_app"].Application, "_handle", around_request):
        patches.wrap(sys.modules["aiohttp.web_urldispatcher"].UrlDispatcher, "resolve", around_search)


def patch_flask(patches: Patches, tell: Telling) -> None:
    """A request is a piece of work on its thread, from the application's call to its answer; its scene is the
    rule that fits."""

    def around_dispatch(original: FunctionType) -> Any:
        def full_dispatch_request(self: Any, *args: Any, **kwargs: Any) -> Any:
            tell.scene(_rule, "flask")
            return original(self, *args, **kwargs)

        return full_dispatch_request

    flask: Any = sys.modules["flask.app"].Flask
    patches.wrap(flask, "__call__", lambda original: _around_wsgi(original, "Flask request", tell))
    patches.wrap(flask, "full_dispatch_request", around_dispatch)


def patch_quart(patches: Patches, tell: Telling) -> None:
    """Flask's rules, on a loop."""

    def around_dispatch(original: FunctionType) -> Any:
        async def full_dispatch_request(self: Any, *args: Any, **kwargs: Any) -> Any:
            with tell.keep_scene():
                tell.scene(_rule, "quart")
                return await original(self, *args, **kwargs)

        return full_dispatch_request

    patches.wrap(sys.modules["quart.app"].Quart, "full_dispatch_request", around_dispatch)


def _rule(library: str) -> str | None:
    request: Any = sys.modules[f"{library}.globals"].request
    rule = request.url_rule
    return None if rule is None else route_name(request.method, rule.rule)


def patch_django_routes(patches: Patches, tell: Telling) -> None:
    """The route that the resolver has found, on WSGI and ASGI servers."""

    def around_search(original: FunctionType) -> Any:
        def resolve_request(self: Any, request: Any) -> Any:
            found = original(self, request)
            tell.scene(lambda: route_name(request.method, f"/{found.route}"))
            return found

        return resolve_request

    def around_request(original: FunctionType) -> Any:
        async def get_response_async(self: Any, request: Any) -> Any:
            with tell.keep_scene():
                return await original(self, request)

        return get_response_async

    handler: Any = sys.modules["django.core.handlers.base"].BaseHandler
    patches.wrap(handler, "resolve_request", around_search)
    # On a WSGI server the scene ends with the work that the request is.
    patches.wrap(handler, "get_response_async", around_request)


def patch_django_wsgi(patches: Patches, tell: Telling) -> None:
    """The moment that the application is made; a request is a piece of work on its thread."""
    handler = sys.modules["django.core.handlers.wsgi"].WSGIHandler
    patches.wrap(handler, "__init__", tell.around_making)
    patches.wrap(handler, "__call__", lambda original: _around_wsgi(original, "Django request", tell))


def _around_wsgi(original: FunctionType, name: str, tell: Telling) -> Any:
    """The `__call__` of a class of applications, timed."""

    def __call__(self: Any, environ: Any, start_response: Any) -> Any:  # noqa: N807 - it is one
        with tell.request(name):
            return original(self, environ, start_response)

    return __call__


def patch_tornado(patches: Patches, tell: Telling) -> None:
    """The handler's class; Tornado's routes are regular expressions, which make no names."""

    def around(original: FunctionType) -> Any:
        async def _execute(self: Any, *args: Any, **kwargs: Any) -> None:
            with tell.keep_scene():
                tell.scene(lambda: route_name(self.request.method, type(self).__qualname__))
                await original(self, *args, **kwargs)

        return _execute

    patches.wrap(sys.modules["tornado.web"].RequestHandler, "_execute", around)


def patch_twisted(patches: Patches, tell: Telling) -> None:
    """The class of the resource that renders itself; a tree of resources has no routes."""

    def around(original: FunctionType) -> Any:
        def render(self: Any, resrc: Any) -> Any:
            with tell.keep_scene():
                tell.scene(lambda: route_name(self.method.decode("ascii"), type(resrc).__qualname__))
                return original(self, resrc)

        return render

    patches.wrap(sys.modules["twisted.web.server"].Request, "render", around)
