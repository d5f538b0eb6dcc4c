"""The middlewares for what loopcanary does not find by itself, and the names they give."""

from __future__ import annotations

import asyncio
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

import loopcanary
from loopcanary.engine.scopes import current_scene
from loopcanary.integrations.asgi import SceneMiddleware
from loopcanary.integrations.telling import Paths, route_name
from loopcanary.integrations.wsgi import RequestMiddleware


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/orders/4711", "GET /orders/{}"),
        ("/orders/4711/", "GET /orders/{}/"),
        ("/users/a@b.example/mail", "GET /users/{}/mail"),
        ("/shop-items/new_one", "GET /shop-items/new_one"),
        ("/", "GET /"),
        ("/" + "x" * 40, "GET /{}"),
        ("/k\u00e4se", "GET /{}"),
    ],
)
def test_values_in_a_path_are_no_part_of_the_name(path, name):
    assert Paths().name("GET", path) == name


@given(st.lists(st.tuples(st.text(max_size=8), st.text(max_size=60)), max_size=50))
def test_clients_cannot_make_names_without_end(requests):
    paths = Paths()
    for method, path in requests:
        assert paths.name(method, path) == paths.name(method, path)
    many = {
        paths.name("GET", "/" + "".join(chr(ord("a") + int(digit)) for digit in str(n))) for n in range(600)
    }
    assert len(many) <= 513
    assert "other" in many


def test_undefined_methods_share_one_name():
    assert route_name("BREW", "/pot") == route_name("COFFEE", "/pot") == "? /pot"


def test_an_asgi_application_has_scenes_and_its_life_has_none():
    seen = []

    async def app(scope, receive, send):
        await asyncio.sleep(0)
        seen.append(current_scene())

    async def main():
        wrapped = SceneMiddleware(app)
        await wrapped({"type": "lifespan"}, None, None)
        await wrapped({"type": "http", "method": "POST", "path": "/orders/7"}, None, None)
        await wrapped({"type": "websocket", "path": "/live/7"}, None, None)
        named = SceneMiddleware(app, name=lambda scope: scope["route"])
        await named({"type": "http", "method": "GET", "route": "mine", "path": "/"}, None, None)
        await named({"type": "http", "method": "GET", "route": None, "path": "/"}, None, None)
        seen.append(current_scene())

    asyncio.run(main())
    assert seen == [None, "POST /orders/{}", "WS /live/{}", "mine", None, None]


def test_a_task_that_a_request_started_leaves_its_scene_with_the_answer():
    seen = []

    async def worker(answered):
        seen.append(current_scene())
        await answered.wait()
        seen.append(current_scene())

    async def app(scope, receive, send):
        scope["worker"] = asyncio.create_task(worker(scope["answered"]))
        await asyncio.sleep(0)

    async def main():
        scope = {"type": "http", "method": "GET", "path": "/start", "answered": asyncio.Event()}
        await SceneMiddleware(app)(scope, None, None)
        scope["answered"].set()
        await scope["worker"]

    asyncio.run(main())
    assert seen == ["GET /start", None]


@pytest.mark.native
def test_a_wsgi_call_over_its_threshold_is_a_stall_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setattr("loopcanary.assembly.kept.END_PATIENCE_S", 60)  # a keeper on a busy host

    def app(environ, start_response):
        time.sleep(float(environ["sleeps"]))
        return [b""]

    canary = loopcanary.install(store=tmp_path / "store", threshold="50ms", console="off")
    try:
        short = RequestMiddleware(app, threshold="1m")
        short({"REQUEST_METHOD": "GET", "PATH_INFO": "/short/1", "sleeps": "0.1"}, None)
        before = canary.statistics()["stalls_suppressed_expected"]
        wrapped = RequestMiddleware(app, threshold="400ms")
        wrapped({"REQUEST_METHOD": "GET", "PATH_INFO": "/long/1", "sleeps": "0.5"}, None)
    finally:
        loopcanary.uninstall()
    from loopcanary.assembly.store import open_store
    from loopcanary.model.search import STALLS

    store = open_store(tmp_path / "store")
    stalls = store.reader.issues(STALLS)
    store.close()
    assert before >= 1
    assert ("GET /long/{}", "WSGI request", "thread") in [(s.scene, s.callback, s.loop) for s in stalls]


def test_a_threshold_that_is_no_duration_is_refused():
    with pytest.raises(ValueError, match="soon"):
        RequestMiddleware(lambda _environ, _start: [], threshold="soon")
