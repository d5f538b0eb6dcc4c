"""A service manager's watchdog is fed while every loop makes progress: real programs, a real socket."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.targets import PATIENCE_S

from loopcanary.engine.recorder import feed_wanted

OVER = "WATCHDOG=1\nSTATUS=loopcanary: every loop makes progress again"
WAITS_MS = 600
NO_LOOP = "import sys\nsys.stdin.read()\n"
IDLE = "import asyncio\nasyncio.run(asyncio.sleep(3600))\n"
BLOCKS = """
import asyncio, os
async def handle():
    os.read(0, 1)
    await asyncio.sleep(3600)
asyncio.run(handle())
"""
HOLDS_THE_GIL = """
import asyncio, re
async def handle():
    re.match(r"(a+)+$", "a" * 64 + "b")
asyncio.run(handle())
"""
FORKS = """
import asyncio, os
async def child():
    print(os.read(0, 1), flush=True)
if os.fork() == 0:
    asyncio.run(child())
    os._exit(0)
os.wait()
"""


class Manager:
    """Its socket, and a program that it has started."""

    def __init__(self, listens: socket.socket, program: subprocess.Popen[bytes]) -> None:
        self._listens = listens
        self.program = program

    def hears(self, timeout_s: float = PATIENCE_S) -> str | None:
        """The next message; None: there is none in the time."""
        self._listens.settimeout(timeout_s)
        with contextlib.suppress(TimeoutError):
            return self._listens.recv(4096).decode()
        return None

    def hears_of_trouble(self) -> str:
        """What is not followed by any more: before the program blocks, the host may have stopped it."""
        while True:
            while (said := self.hears()) == "WATCHDOG=1":
                pass
            assert said is not None
            after = self.hears(2 * WAITS_MS / 1e3)
            if after is None:
                return said
            assert after == OVER


@contextlib.contextmanager
def started(source: str, folder: Path, package_path: Path, *options: str) -> Iterator[Manager]:
    name = f"loopcanary-test-{os.getpid()}-{folder.name}"
    kept = {key: value for key, value in os.environ.items() if not key.startswith("LOOPCANARY")}
    environment = {**kept, "NOTIFY_SOCKET": f"@{name}", "WATCHDOG_USEC": f"{WAITS_MS}000"}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(package_path), kept.get("PYTHONPATH")]))
    run = [sys.executable, "-m", "loopcanary", "run", "--quiet", "--sd-watchdog", *options, "-c", source]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listens:
        listens.bind(f"\0{name}")
        program = subprocess.Popen(
            ["/bin/sh", "-c", 'WATCHDOG_PID=$$ exec "$@"', "sh", *run],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
        )
        try:
            yield Manager(listens, program)
        finally:
            program.kill()
            program.communicate()


@pytest.mark.parametrize("engine", [pytest.param("native", marks=pytest.mark.native), "portable"])
@pytest.mark.parametrize("source", [IDLE, NO_LOOP], ids=["a loop waits", "no loop runs"])
def test_what_gets_on_is_fed_again_and_again(tmp_path, package_path, source, engine):
    with started(source, tmp_path, package_path, "--engine", engine) as manager:
        heard = [manager.hears() for _ in range(3)]
    assert "WATCHDOG=1" in heard
    assert all(said is not None for said in heard)


@pytest.mark.parametrize("engine", [pytest.param("native", marks=pytest.mark.native), "portable"])
def test_a_blocked_loop_is_named_and_fed_when_it_is_back(tmp_path, package_path, engine):
    with started(BLOCKS, tmp_path, package_path, "--engine", engine) as manager:
        said = manager.hears_of_trouble()
        assert said.startswith("STATUS=loopcanary: MainThread (asyncio) has not waited for events for ")
        assert manager.program.stdin is not None
        manager.program.stdin.write(b"!")
        manager.program.stdin.flush()
        assert manager.hears() == OVER
        assert manager.hears() == "WATCHDOG=1"


@pytest.mark.native
def test_a_loop_that_holds_the_gil_is_named(tmp_path, package_path):
    with started(HOLDS_THE_GIL, tmp_path, package_path) as manager:
        assert manager.hears_of_trouble().endswith(" s, in handle")


@pytest.mark.native
def test_a_forked_child_does_not_speak_for_its_parent(tmp_path, package_path):
    with started(FORKS, tmp_path, package_path) as manager:
        # The child's loop is blocked meanwhile.
        assert [manager.hears(), manager.hears()] == ["WATCHDOG=1"] * 2


def test_only_the_process_that_is_meant_feeds():
    meant = {"NOTIFY_SOCKET": "/run/notify", "WATCHDOG_USEC": "30000000", "WATCHDOG_PID": str(os.getpid())}
    assert feed_wanted(meant) == (b"/run/notify", 15_000_000_000)
    assert feed_wanted({**meant, "WATCHDOG_PID": str(os.getppid())}) is None
    assert feed_wanted({key: value for key, value in meant.items() if key != "WATCHDOG_PID"}) is None
    for name, value in (("NOTIFY_SOCKET", "vsock:2:1"), ("WATCHDOG_USEC", "soon"), ("WATCHDOG_USEC", "0")):
        assert feed_wanted({**meant, name: value}) is None
