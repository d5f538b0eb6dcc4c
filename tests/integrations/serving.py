"""Servers as child programs on a socket of the file system, and requests to them."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.program.watching import PROGRAMS as BLOCKING
from tests.program.watching import Marks, Watched, admitted, is_by_the_host

PROGRAMS = Path(__file__).parent / "programs"
GIVES_UP_S = 120


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path | str) -> None:
        super().__init__("localhost", timeout=GIVES_UP_S)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


def ask(path: Path, line: str) -> int:
    """The status of one request, such as "GET /quick"."""
    method, _, target = line.partition(" ")
    connection = UnixConnection(path)
    try:
        connection.request(method, target)
        answer = connection.getresponse()
        answer.read()
        return answer.status
    finally:
        connection.close()


def ask_many(path: Path, lines: Sequence[str]) -> list[int]:
    """Several requests on one connection that is kept."""
    connection = UnixConnection(path)
    statuses = []
    try:
        for line in lines:
            method, _, target = line.partition(" ")
            connection.request(method, target)
            answer = connection.getresponse()
            answer.read()
            statuses.append(answer.status)
    finally:
        connection.close()
    return statuses


@contextmanager
def served(
    watched: Watched, words: Sequence[str | Path], path: Path, command: Sequence[str] | None = None
) -> Iterator[None]:
    """The server runs under `loopcanary run`, or by the `command` given, while the block does, and is then
    asked to end."""
    folders = os.pathsep.join([str(PROGRAMS), str(BLOCKING)])
    environment = watched.environment(PYTHONPATH=folders, PYTHONWARNINGS="ignore")
    child = subprocess.Popen(
        command or watched.command(*words),
        env=environment,
        cwd=path.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        _wait_for(path, child)
        yield
    finally:
        child.send_signal(signal.SIGTERM)
        try:
            said, _ = child.communicate(timeout=GIVES_UP_S)
        except subprocess.TimeoutExpired:
            child.kill()
            raise
        sys.stdout.write(said)


def _wait_for(path: Path, child: subprocess.Popen[str]) -> None:
    gives_up = time.monotonic() + GIVES_UP_S
    while time.monotonic() < gives_up:
        assert child.poll() is None, child.communicate()[0]
        try:
            ask(path, "GET /quick")
        except (OSError, http.client.HTTPException):
            time.sleep(0.05)
        else:
            return
    raise AssertionError("nobody answers on the socket")


def under_load(path: Path, long_ones: Sequence[str], quick: int = 30) -> None:
    """The long requests one after the other on one connection, while two others ask for what is short."""
    with ThreadPoolExecutor(3) as pool:
        short = [pool.submit(ask_many, path, ["GET /quick"] * quick) for _ in range(2)]
        assert set(ask_many(path, long_ones)) == {200}
        assert all(set(each.result()) == {200} for each in short)


Place = tuple[str | None, str | None]
"""A scene, or the name of a job, and the function that blocked there."""


def assert_told(
    watched: Watched, expected: dict[Place, int], program: str, by_name: bool = False
) -> list[dict[str, Any]]:
    """The report has the expected number of stalls of each place, for their sleep at the line with the
    comment `# function`; others only of a crowded machine, which may not even run the watchdog, or before the
    first request. One that the host kept from running until its handler gave up counts by its scene alone.
    `by_name`: the scene is missing, the callback's name is compared. Returns the stalls expected."""
    found: dict[Place, list[dict[str, Any]]] = {place: [] for place in expected}
    starved: Counter[str | None] = Counter()
    for stall in watched.report()["stalls"]:
        name = stall["callback"]["name"] if by_name else stall["scene"]
        function = (stall["culprit"] or {}).get("function")
        if (name, function) in found:
            found[name, function].append(stall)
        elif stall["scene"] is not None or stall["loop"] == "thread":
            by_the_host = "host" in admitted(stall, ()) or is_by_the_host(stall) or not stall["samples"]
            assert by_the_host or is_first_import(stall), stall
            starved[name] += by_the_host
    for place, stalls in found.items():
        assert 0 <= expected[place] - len(stalls) <= starved[place[0]], place
    for (_, function), stalls in found.items():
        for stall in stalls:
            assert stall["culprit"]["line"] == line_of(program, function)
            assert stall["cause"] in admitted(stall, ("sleep",)), stall["evidence"]
    return [stall for stalls in found.values() for stall in stalls]


def is_first_import(stall: dict[str, Any]) -> bool:
    """What a server imports with its first request; how long the host held that up is not always known."""
    culprit = stall["culprit"]
    return stall["cause"] == "import" and (culprit is None or not culprit["in_app"])


def line_of(program: str, function: str) -> int:
    """The line with the comment `# function`."""
    return Marks((PROGRAMS / program).read_text(encoding="utf-8")).find(function)[1]
