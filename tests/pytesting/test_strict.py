"""`pytest --loopcanary-strict` and `--loopcanary-hang`, in test runs of their own."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.pytesting.test_plugin import outcomes, run, started

CASES = """
import asyncio, contextlib, fcntl, os, pathlib, shutil, socket, sqlite3, subprocess, threading, time
import urllib.request
import anyio, pytest

def serving():
    server = socket.create_server(("127.0.0.1", 0))
    return server.getsockname()[1], server

PORT, SERVER = serving()
HERE = pathlib.Path(__file__)

def in_loop(call):
    async def main():
        call()
    asyncio.run(main())

BLOCKING = {
    "time.sleep": lambda: time.sleep(0.01),
    "open": lambda: HERE.read_text(),
    "os.listdir": lambda: os.listdir("."),
    "os.scandir": lambda: list(os.scandir(".")),
    "os.system": lambda: os.system("true"),
    "shutil.copyfile": lambda: shutil.copyfile(HERE, "copy"),
    "socket.connect": lambda: socket.create_connection(("127.0.0.1", PORT)),
    "socket.getaddrinfo": lambda: socket.getaddrinfo("localhost", 80),
    "sqlite3.connect": lambda: sqlite3.connect("some.db"),
    "subprocess.Popen": lambda: subprocess.run(["true"]),
    "urllib.Request": lambda: urllib.request.urlopen("http://127.0.0.1:9/"),
    "fcntl.flock": lambda: fcntl.flock(SERVER.fileno(), fcntl.LOCK_SH),
}

@pytest.mark.parametrize("call", BLOCKING)
def test_raises(call):
    in_loop(BLOCKING[call])

def test_at_the_call():
    reached = []
    def handler():
        reached.append("before")
        time.sleep(10)
        reached.append("after")
    with contextlib.suppress(RuntimeError):
        in_loop(handler)
    print("reached", reached)

FREE = {
    "no loop runs": lambda: time.sleep(0.001),
    "zero": lambda: in_loop(lambda: time.sleep(0)),
    "memory": lambda: in_loop(lambda: sqlite3.connect(":memory:").close()),
    "address": lambda: in_loop(lambda: socket.getaddrinfo("127.0.0.1", 80)),
    "import": lambda: in_loop(lambda: __import__("wave")),
    "thread": lambda: asyncio.run(asyncio.to_thread(time.sleep, 0.001)),
    "non-blocking": lambda: in_loop(lambda: fcntl.flock(SERVER.fileno(), fcntl.LOCK_SH | fcntl.LOCK_NB)),
    "descriptor": lambda: in_loop(lambda: open(os.dup(0)).close()),
}

@pytest.mark.parametrize("call", FREE)
def test_free(call):
    FREE[call]()

async def talk():
    reader, writer = await asyncio.open_connection("localhost", PORT)
    writer.close()
    child = await asyncio.create_subprocess_exec("true")
    assert await child.wait() == 0

def test_what_the_loop_does_itself():
    asyncio.run(talk())

def test_trio():
    async def main():
        time.sleep(0.02)
    anyio.run(main, backend="trio")

def test_swallowed():
    def handler():
        with contextlib.suppress(Exception):
            time.sleep(0.01)
    in_loop(handler)

@pytest.mark.loopcanary(allow=["time.sleep"])
def test_allowed():
    in_loop(lambda: time.sleep(0.01))

def legacy():
    time.sleep(0.01)

@pytest.mark.loopcanary(allow=["legacy"])
def test_allowed_function():
    in_loop(legacy)

@pytest.mark.loopcanary(strict=False)
def test_not_strict():
    in_loop(lambda: time.sleep(0.01))
"""


def test_calls_that_block_raise_and_others_do_not(tmp_path: Path) -> None:
    result = run(tmp_path, "--loopcanary-strict", text=CASES)
    found = outcomes(result)
    failed = {name for name, word in found.items() if word == "FAILED"}
    calls = {name.partition("[")[2].rstrip("]") for name in found if name.startswith("test_raises[")}
    assert len(calls) == 12
    assert failed == {
        *(f"test_raises[{call}]" for call in calls),
        *("test_at_the_call", "test_swallowed", "test_trio"),
    }, result.stdout
    assert len(found) == 27
    for call in calls:
        assert f"{call} blocks the event loop, in <lambda> (" in result.stdout
    assert "reached ['before']" in result.stdout
    assert "time.sleep blocks the event loop, in test_swallowed.<locals>.handler" in result.stdout


def test_a_marker_alone_makes_a_test_strict(tmp_path: Path) -> None:
    text = """
import asyncio, time, pytest
async def main():
    time.sleep(0.001)
@pytest.mark.loopcanary(strict=True)
def test_strict():
    asyncio.run(main())
def test_other():
    asyncio.run(main())
"""
    result = run(tmp_path, text=text)
    assert outcomes(result) == {"test_strict": "FAILED", "test_other": "PASSED"}
    assert "BlockingCallError: time.sleep blocks the event loop, in main (" in result.stdout


def test_what_loopcanary_itself_does_in_a_loop_is_allowed(tmp_path: Path) -> None:
    text = """
import asyncio, time
def test_asks(loopcanary):
    async def main():
        loopcanary.assert_no_stall("10s")
    asyncio.run(main())
def test_stalls(loopcanary):
    def stall():
        end = time.thread_time() + 0.15  # a stall also of an idle host
        while time.thread_time() < end:
            pass
    async def main():
        stall()
        await asyncio.sleep(0)
        return [one.culprit.function for one in loopcanary.stalls]
    assert asyncio.run(main()) == ["stall"]
"""
    result = run(tmp_path, "--loopcanary", "--loopcanary-strict", text=text)
    assert outcomes(result) == {"test_asks": "PASSED", "test_stalls": "PASSED"}, result.stdout


HANGS = """
import threading, time
from pathlib import Path

def test_hangs_and_goes_on():
    threading.Thread(target=threading.Event().wait, name="a worker", daemon=True).start()
    while not Path("seen").exists():  # made once the process beside has shown the threads
        time.sleep(0.01)

def test_quick():
    pass
"""


def test_a_test_that_hangs_is_shown_and_goes_on(tmp_path: Path) -> None:
    with started(tmp_path, "--loopcanary-hang=300ms", text=HANGS) as process:
        words = ""
        while "time.sleep(0.01)" not in words:
            line = process.stderr.readline()
            assert line, words
            words += line
        (tmp_path / "seen").touch()
        rest, output = process.stderr.read(), process.stdout.read()
    assert "test_cases.py::test_hangs_and_goes_on' has run for 0.3 s and goes on; its threads:" in words
    assert "a worker" in words + rest
    assert "test_quick' has run" not in rest
    assert "2 passed" in output
    assert process.returncode == 0


@pytest.mark.parametrize("option", ["--loopcanary-hang=soon", "--loopcanary-hang=-1s"])
def test_a_wrong_duration_is_bad_use(tmp_path: Path, option: str) -> None:
    result = run(tmp_path, option, text=HANGS)
    assert result.returncode == 4
    assert "--loopcanary-hang" in result.stderr
