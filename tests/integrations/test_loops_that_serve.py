"""Servers with a loop: the route is the scene of what stalls it."""

from __future__ import annotations

import pytest

from .serving import PROGRAMS, ask, assert_told, served, under_load

FASTAPI = {
    ("GET /orders/{order_id}", "order"): 2,
    ("POST /shop/items/{item_id}", "item"): 1,
    ("GET /inner/users/{name}", "user"): 1,
}


@pytest.mark.parametrize(
    ("server", "engine"),
    [
        pytest.param("uvicorn", "native", marks=pytest.mark.native),
        pytest.param("hypercorn", "native", marks=pytest.mark.native),
        ("uvicorn", "portable"),
    ],
)
def test_fastapi_under_load(watched, path, server, engine):
    for needed in (server, "fastapi"):
        pytest.importorskip(needed)
    words = {
        "uvicorn": ["-m", "uvicorn", "web_fastapi:app", "--uds", path, "--log-level", "warning"],
        "hypercorn": ["-m", "hypercorn", "web_fastapi:app", "--bind", f"unix:{path}"],
    }[server]
    if engine == "portable":
        words += ["--loop", "asyncio"]  # uvloop's runs are not seen without the C core
    one = watched(engine)
    with served(one, words, path):
        under_load(path, ["GET /orders/1", "POST /shop/items/a", "GET /inner/users/bob", "GET /orders/2"])
        assert ask(path, "GET /pool") == 200
    assert_told(one, FASTAPI, "web_fastapi.py")


@pytest.mark.native
def test_aiohttp_serves_many_requests_by_one_task(watched, path):
    pytest.importorskip("aiohttp")
    one = watched()
    with served(one, [PROGRAMS / "web_aiohttp.py", path], path):
        under_load(path, ["GET /orders/1", "GET /quick", "GET /shop/items/a", "GET /orders/2"])
    assert_told(
        one,
        {("GET /orders/{order_id}", "order"): 2, ("GET /shop/items/{item_id}", "item"): 1},
        "web_aiohttp.py",
    )


@pytest.mark.native
def test_tornado_has_the_handlers_class(watched, path):
    pytest.importorskip("tornado")
    one = watched()
    with served(one, [PROGRAMS / "web_tornado.py", path], path):
        under_load(path, ["GET /orders/1", "POST /items/a", "GET /orders/2"])
    assert_told(one, {("GET OrderHandler", "get"): 2, ("POST ItemHandler", "post"): 1}, "web_tornado.py")


@pytest.mark.native
def test_django_on_an_asgi_server(watched, path):
    for needed in ("django", "uvicorn"):
        pytest.importorskip(needed)
    one = watched()
    with served(one, ["-m", "uvicorn", "web_django:asgi", "--uds", path, "--log-level", "warning"], path):
        under_load(path, ["GET /shop/items/1/", "GET /shop/orders/7/", "GET /shop/items/2/"])
    assert_told(one, {("GET /shop/items/<int:item_id>/", "item"): 2}, "web_django.py")


@pytest.mark.native
def test_quart(watched, path):
    for needed in ("quart", "uvicorn"):
        pytest.importorskip(needed)
    one = watched()
    with served(one, ["-m", "uvicorn", "web_quart:app", "--uds", path, "--log-level", "warning"], path):
        under_load(path, ["GET /orders/1", "GET /orders/2"])
    assert_told(one, {("GET /orders/<int:order_id>", "order"): 2}, "web_quart.py")


@pytest.mark.native
def test_twisted_web_has_the_resources_class(watched, path):
    pytest.importorskip("twisted")
    one = watched()
    with served(one, [PROGRAMS / "web_twisted.py", path], path):
        under_load(path, ["GET /orders", "POST /orders"])
    stalls = assert_told(
        one, {("GET Orders", "render_GET"): 1, ("POST Orders", "render_POST"): 1}, "web_twisted.py"
    )
    assert {stall["loop"] for stall in stalls} == {"twisted"}
