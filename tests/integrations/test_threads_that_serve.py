"""Servers that answer on threads: a request is a piece of work with a threshold of its own."""

from __future__ import annotations

import sys

import pytest

from .serving import PROGRAMS, assert_told, served, under_load

OPTIONS = {"LOOPCANARY_JOB_THRESHOLD": "500ms"}
QUICK = 4
ORDERS = ["GET /orders/1", "GET /orders/2"]
FLASK = {("GET /orders/<int:order_id>", "order"): 2}


@pytest.fixture(autouse=True)
def threshold(monkeypatch):
    from tests.program.watching import Watched

    plain = Watched.environment
    monkeypatch.setattr(Watched, "environment", lambda self, **more: plain(self, **OPTIONS, **more))


def check(one, program, expected):
    stalls = assert_told(one, expected, program)
    assert {stall["loop"] for stall in stalls} == {"thread"}
    assert all(stall["callback"]["name"].endswith(" request") for stall in stalls)
    return stalls


@pytest.mark.parametrize("engine", [pytest.param("native", marks=pytest.mark.native), "portable"])
def test_flask_on_a_plain_server(watched, path, engine):
    pytest.importorskip("flask")
    one = watched(engine)
    with served(one, [PROGRAMS / "serve_wsgi.py", "wsgiref", "web_flask:app", path], path):
        under_load(path, ORDERS, QUICK)
    check(one, "web_flask.py", FLASK)


@pytest.mark.native
@pytest.mark.parametrize("server", ["wsgiref", "werkzeug", "waitress", "cheroot"])
def test_an_application_without_a_framework(watched, path, server):
    for needed in (server, "flask"):
        pytest.importorskip(needed)
    one = watched()
    with served(one, [PROGRAMS / "serve_wsgi.py", server, "web_flask:plain", path], path):
        under_load(path, ["GET /any"], QUICK)
    check(one, "web_flask.py", {(None, "plain"): 1})


@pytest.mark.native
@pytest.mark.parametrize(("workers", "module"), [("sync", "django"), ("gthread", "flask")])
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
    check(one, f"web_{module}.py", expected)


BY_THE_ENVIRONMENT = """
import runpy, sys
from loopcanary import _startup
_startup.start()  # as the .pth file of loopcanary-auto does
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
    stalls = check(one, "web_flask.py", FLASK)
    (session,) = {stall["session"] for stall in stalls}
    assert [each["end"] for each in one.report()["sessions"] if each["id"] == session] == ["exit"]
