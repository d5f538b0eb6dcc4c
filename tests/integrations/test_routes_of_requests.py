"""Which requests enter their route's scene with no coroutine around the handler: native/probes/asgi."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar

import pytest
from tests.program.programs.blocking import slow
from tests.this_process import watch

import loopcanary
from loopcanary import _native
from loopcanary.engine import scopes
from loopcanary.engine.scopes import current_scene

__all__ = ["watch"]
pytestmark = pytest.mark.native

SCOPE = {"type": "http", "method": "GET"}
KNOWN = {("GET", "/orders/{id}"): "GET /orders/{id}", ("GET", "/shop/orders/{id}"): "GET /shop/orders/{id}"}
MOUNTED = ContextVar("mounted", default="")


class Route:
    """As Starlette's."""

    path_format = "/orders/{id}"

    async def handle(self, scope, receive, send):
        return self, scope, receive, send, current_scene()


async def around(self, scope, receive, send):
    return ("around", *(await Route.handle(self, scope, receive, send)))


handle = _native.asgi_route(Route.handle, around, KNOWN, MOUNTED)


async def request(scope=SCOPE, before=None, mounted=""):
    """All of a request's task, as the server makes it."""
    MOUNTED.set(mounted)
    if before is None:
        return await handle(ROUTE, scope, "receive", "send")
    with loopcanary.scene(before):
        return await handle(ROUTE, scope, "receive", "send")


async def job():
    """A task that is more than a request: a client calls the application."""
    return await request()


ROUTE = Route()
_native.asgi_root(request)


@pytest.fixture
def ask(watch):
    with watch.installed():

        async def run(task):
            with loopcanary.scene("told once"):
                pass
            return await asyncio.create_task(task)

        yield lambda task: asyncio.run(run(task))


def test_a_requests_task_is_in_the_routes_scene(ask):
    assert ask(request()) == (ROUTE, SCOPE, "receive", "send", "GET /orders/{id}")


@pytest.mark.parametrize("is_root", [True, False], ids=["no coroutine around it", "the library's side"])
def test_a_task_that_a_request_started_leaves_its_scene_with_the_answer(watch, is_root):
    async def worker(answered):
        slow()
        await answered.wait()
        slow()

    class Starting(Route):
        async def handle(self, *_request):
            workers.append(asyncio.create_task(worker(answered)))
            await asyncio.sleep(0)
            return current_scene()

    async def entering(route):
        return await starting(route, SCOPE, "receive", "send")

    async def kept(self, scope, receive, send):
        with scopes.keep_scene():
            scopes.enter_scene("GET /orders/{id}")
            return await Starting.handle(self, scope, receive, send)

    async def main():
        with loopcanary.scene("told once"):
            pass
        assert await asyncio.create_task(entering(Starting())) == "GET /orders/{id}"
        answered.set()
        await workers[0]

    workers, answered = [], asyncio.Event()
    starting = _native.asgi_route(Starting.handle, kept, KNOWN, MOUNTED)
    if is_root:
        _native.asgi_root(entering)
    with watch.installed():
        asyncio.run(main())
    assert [stall.scene for stall in watch.stalls()] == ["GET /orders/{id}", None]


def test_a_mounted_route_has_its_mounts_in_the_name(ask):
    assert ask(request(mounted="/shop"))[-1] == "GET /shop/orders/{id}"


@pytest.mark.parametrize(
    "scope", [{"method": "PUT"}, {"method": "GET", "fastapi": {}}, {}], ids=["unknown", "fastapi", "bare"]
)
def test_a_name_that_is_not_known_is_found_by_the_librarys_side(ask, scope):
    assert ask(request(scope))[0] == "around"


def test_a_task_that_goes_on_gets_its_scene_back(ask):
    assert ask(job())[0] == "around"


def test_a_request_in_a_scene_gets_it_back(ask):
    assert ask(request(before="outer"))[0] == "around"


def test_without_an_engine_the_librarys_side_handles_all():
    assert asyncio.run(request())[0] == "around"
