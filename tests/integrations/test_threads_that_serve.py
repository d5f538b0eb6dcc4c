"""Servers that answer on threads: a request is a piece of work with a threshold of its own."""

from __future__ import annotations

import sys

import pytest

from .serving import PROGRAMS, line_of, served, told, under_load

OPTIONS = {"LOOPCANARY_REQUEST_THRESHOLD": "500ms"}
QUICK = 4
ORDERS = ["GET /orders/1", "GET /orders/2"]
FLASK = {("GET /orders/<int:order_id>", "order"): 2}


@pytest.fixture(autouse=True)
def threshold(monkeypatch):
    from tests.program.watching import Watched

    plain = Watched.environment
    monkeypatch.setattr(Watched, "environment", lambda self, **more: plain(self, **OPTIONS, **more))


def check(one, program, function, expected):
    stalls = told(one)
    assert {place: len(found) for place, found in stalls.items()} == expected
    for found in stalls.values():
        for stall in found:
            assert stall["culprit"]["line"] == line_of(program, function)
            assert stall["cause"] == "sleep"
            assert stall["loop"] == "thread"
            assert stall["callback"]["name"].endswith(" request")


@pytest.mark.parametrize(
    ("server", "engine"),
    [
        ("wsgiref", "portable"),
        pytest.param("werkzeug", "native", marks=pytest.mark.native),
        pytest.param("waitress", "native", marks=pytest.mark.native),
    ],
)
def test_flask_on_plain_servers(watched, path, server, engine):
    for needed in (server, "flask"):
        pytest.importorskip(needed)
    one = watched(engine)
    with served(one, [PROGRAMS / "serve_wsgi.py", server, "web_flask:app", path], path):
        under_load(path, ORDERS, QUICK)
    check(one, "web_flask.py", "order", FLASK)


@pytest.mark.native
@pytest.mark.parametrize("server", ["wsgiref", "werkzeug", "waitress", "cheroot"])
def test_an_application_without_a_framework(watched, path, server):
    for needed in (server, "flask"):
        pytest.importorskip(needed)
    one = watched()
    with served(one, [PROGRAMS / "serve_wsgi.py", server, "web_flask:plain", path], path):
        under_load(path, ["GET /any"], QUICK)
    check(one, "web_flask.py", "plain", {(None, "plain"): 1})


@pytest.mark.native
@pytest.mark.parametrize("workers", ["sync", "gthread"])
@pytest.mark.parametrize("module", ["flask", "django"])
def test_gunicorns_workers(watched, path, workers, module):
    for needed in ("gunicorn", module):
        pytest.importorskip(needed)
    application = {"flask": "web_flask:app", "django": "web_django:wsgi"}[module]
    words = [
        "-m",
        "gunicorn",
        application,
        "--bind",
        f"unix:{path}",
        "--workers",
        "2",
        "--log-level",
        "error",
    ]
    one = watched()
    with served(one, [*words, "--worker-class", workers, "--threads", "4"], path):
        orders = ORDERS if module == "flask" else ["GET /shop/orders/1/", "GET /shop/orders/2/"]
        under_load(path, orders, QUICK)
    expected = FLASK if module == "flask" else {("GET /shop/orders/<int:order_id>/", "order"): 2}
    check(one, f"web_{module}.py", "order", expected)


BY_THE_ENVIRONMENT = """
import runpy, sys
from loopcanary import _startup
_startup.start()  # as the .pth file of an installed loopcanary does
sys.argv = sys.argv[1:]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""


@pytest.mark.native
def test_workers_that_only_the_environment_asked_to_watch(watched, path, monkeypatch):
    """No loop runs anywhere in such a server: its first request starts the engine of its worker."""
    for needed in ("gunicorn", "flask"):
        pytest.importorskip(needed)
    one = watched()
    monkeypatch.setitem(OPTIONS, "LOOPCANARY", "1")
    monkeypatch.setitem(OPTIONS, "LOOPCANARY_STORE", str(one.store))
    words = ["gunicorn", "web_flask:app", "--bind", f"unix:{path}", "--workers", "1", "--log-level", "error"]
    with served(one, [], path, [sys.executable, "-c", BY_THE_ENVIRONMENT, *words]):
        under_load(path, ORDERS, QUICK)
    check(one, "web_flask.py", "order", FLASK)
    (session,) = {stall["session"] for found in told(one).values() for stall in found}
    assert [each["end"] for each in one.report()["sessions"] if each["id"] == session] == ["exit"]
