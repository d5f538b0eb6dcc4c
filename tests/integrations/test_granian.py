"""granian, whose requests come from threads of Rust's to a loop of Python's in a worker of its own."""

from __future__ import annotations

import http.client
import os
import signal
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.program.watching import Watched

from loopcanary.flight import FlightError, FlightFile
from loopcanary.model.config import REQUESTS_ONE_OF as ONE_OF

from .serving import GIVES_UP_S, ask, assert_told, served, under_load

pytestmark = pytest.mark.native

HANGS_NS = 500_000_000
QUICK = 5
WAITING, BLOCKED_S = ONE_OF, 0.25
"""As in programs/web_handed.py."""


def command(path: Path, loop: str) -> list[str | Path]:
    for needed in ("granian", "fastapi", *(["uvloop"] if loop == "uvloop" else [])):
        pytest.importorskip(needed)
    return ["-m", "granian", "--interface", "asgi", "--loop", loop, "--uds", path, "web_fastapi:app"]


TOLD = {("GET /orders/{order_id}", "order"): 2, ("POST /shop/items/{item_id}", "item"): 1}


def test_handlers_that_block_are_found(watched, path):
    one = watched()
    with served(one, command(path, "asyncio"), path):
        under_load(path, ["GET /orders/1", "POST /shop/items/a", "GET /orders/2"], QUICK)
    assert_served(assert_told(one, TOLD, "web_fastapi.py"), "asyncio")


def test_a_request_waits_from_its_hand_over_in_a_block(watched, path):
    pytest.importorskip("granian")
    one = watched()
    words = ["-m", "granian", "--interface", "asginl", "--loop", "asyncio", "--uds", path, "web_handed:app"]
    with served(one, words, path), ThreadPoolExecutor(WAITING + 1) as pool:
        blocking = pool.submit(ask, path, "GET /blocks")
        wait_for(path.parent / "blocks", blocking)
        waiting = [pool.submit(ask, path, "GET /quick") for _ in range(WAITING)]
        assert {each.result(GIVES_UP_S) for each in [blocking, *waiting]} == {200}
    (figures,) = [each for session in one.report()["sessions"] for each in session["input"]]
    # The first one of all, and one of those that wait.
    assert (figures["loop"], figures["events"]) == ("requests", 2)
    assert figures["queued_ms"] >= 1000 * BLOCKED_S


def test_a_killed_worker_leaves_its_hang_behind(watched, path):
    one = watched()
    with served(one, command(path, "uvloop"), path), ThreadPoolExecutor(1) as pool:
        under_load(path, ["GET /orders/1", "POST /shop/items/a", "GET /orders/2"], QUICK)
        asked = pool.submit(ask, path, "GET /stuck")
        worker = hanging_worker(one)
        os.kill(worker, signal.SIGKILL)
        # Its connection dies with the worker.
        assert isinstance(asked.exception(GIVES_UP_S), OSError | http.client.HTTPException)
    stalls = assert_told(one, TOLD | {("GET /stuck", "stuck"): 1}, "web_fastapi.py")
    assert_served(stalls, "uvloop")
    assert [stall["scene"] for stall in stalls if stall["state"] == "killed"] == ["GET /stuck"]
    (session,) = [each for each in one.report()["sessions"] if each["pid"] == worker]
    assert session["end"] == "killed"


def wait_for(marked: Path, asked: Future[int]) -> None:
    until = time.monotonic() + GIVES_UP_S
    while not marked.exists():
        assert not asked.done(), asked.result()
        assert time.monotonic() < until
        time.sleep(0.005)


def assert_served(stalls: list[dict[str, Any]], loop: str) -> None:
    """By tasks of the loop that was asked for, all in one worker."""
    assert {stall["loop"] for stall in stalls} == {loop}
    assert len({stall["pid"] for stall in stalls}) == 1
    assert all(stall["callback"]["task"] for stall in stalls)


def hanging_worker(watched: Watched) -> int:
    """The process that hangs by the evidence in its flight file."""
    until = time.monotonic() + GIVES_UP_S
    while time.monotonic() < until:
        for link in (watched.store / "flight").glob("*.flight"):
            # It may be in the making, or have gone.
            with suppress(FlightError, OSError), FlightFile.open(link.resolve()) as flight:
                stalls = flight.stalls()
                if any(e.end_ns is None and e.last_look_ns - e.begin_ns > HANGS_NS for _, e in stalls):
                    return flight.header.pid
        time.sleep(0.02)
    raise AssertionError("no process hangs")
