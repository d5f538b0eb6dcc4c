"""Programs that do not start or end, whose loops never stall: told while they hang, and not otherwise."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from loopcanary.assembly.store import open_store
from loopcanary.engine import attachment
from loopcanary.flight import FlightFile
from loopcanary.model.search import IssueQuery

from .watching import GIVES_UP_S, Place

pytestmark = pytest.mark.native

PATIENCE_NS = 2_000_000_000
"""A machine under load may hold up what goes on by itself for a while."""
SOON = f"""
import queue, socket
import loopcanary
from loopcanary.engine import recorder
recorder.BOOT_HANG_NS = recorder.EXIT_HANG_NS = {PATIENCE_NS}
loopcanary.uninstall()
"""
"""The begin of a program that is watched from its next lines on, with less patience."""
INSTALL = """
canary = loopcanary.install(store="store", console="on")
jobs = queue.Queue()

def work():
    while True:
        jobs.get()

async def main(*started):
    await asyncio.sleep(0)
"""
ENDS = {
    "asyncio.run waits for thread asyncio_0": """
async def busy():
    asyncio.get_running_loop().run_in_executor(None, work)
    await asyncio.sleep(0.1)
asyncio.run(busy())
""",
    "threading._shutdown waits for thread jobs": """
asyncio.run(main())
threading.Thread(target=work, name="jobs").start()
""",
    "the end of concurrent.futures waits for thread pool_0": """
asyncio.run(main())
from concurrent.futures import ThreadPoolExecutor
pool = ThreadPoolExecutor(2, thread_name_prefix="pool")
pool.submit(work)
""",
    "the exit function close waits": """
asyncio.run(main())
import atexit
atexit.register(lambda: None)
@atexit.register
def close():
    jobs.get()
""",
}


def hung(place: Place, text: str, **variables: str) -> str:
    """The line in which it is told that the program hangs; then it is ended."""
    program = place.program(SOON + text)
    environment = place.environment(**variables)
    process = place.start(program, env=environment, stderr=subprocess.PIPE, stdin=subprocess.PIPE)
    assert process.stderr is not None
    return next(line.decode() for line in process.stderr if b" hang: " in line)


@pytest.mark.parametrize("waits", ENDS)
def test_a_program_that_does_not_end_says_for_what_it_waits(place: Place, waits: str):
    said = hung(place, INSTALL + ENDS[waits])
    assert said.startswith(f"[loopcanary] exit hang: the program does not end: {waits}")
    assert "in close (program.py:" in said or "in work (program.py:" in said


def test_it_is_told_where_the_program_judges_itself(place: Place):
    [text] = [text for waits, text in ENDS.items() if "thread jobs" in waits]
    assert "waits for thread jobs, in work (program.py:" in hung(place, INSTALL + text, LOOPCANARY_KEEPER="0")


def test_after_an_interrupt_any_wait_is_told(place: Place):
    text = """
asyncio.run(main())
threading.Thread(target=time.sleep, args=(280,), name="sleeper").start()
import signal
signal.raise_signal(signal.SIGINT)
"""
    assert "threading._shutdown waits for thread sleeper" in hung(place, INSTALL + text)


def test_a_handler_of_interrupts_may_end_what_a_thread_waits_for(monkeypatch):
    assert not attachment._handles_interrupts()
    monkeypatch.setattr("_signal.getsignal", {signal.SIGINT: print}.get)
    assert attachment._handles_interrupts()


IMPORT = """
sys.path.insert(0, os.path.dirname(__file__))
with open(os.path.join(sys.path[0], "settings.py"), "w") as module:
    module.write('''
import socket
server = socket.create_server(("127.0.0.1", 0))
def load():
    return socket.create_connection(server.getsockname()).recv(1)
load()
''')
canary = loopcanary.install(store="store", console="on")
import settings
"""


def test_an_import_that_hangs_is_named_by_report_and_health(place: Place):
    said = hung(place, IMPORT)
    assert "boot hang: an import has not ended: it waits for socket to 127.0.0.1:" in said
    assert ", in load (settings.py:5)" in said
    [process] = place._started
    health = [sys.executable, "-m", "loopcanary", "health", str(process.pid), "--format", "json"]
    done = subprocess.run(health, capture_output=True, check=False, timeout=GIVES_UP_S)
    [one] = json.loads(done.stdout)["programs"]
    assert (done.returncode, one["healthy"], one["hang"]["kind"]) == (0, True, "boot-hang")
    process.send_signal(signal.SIGKILL)
    process.wait()
    opened = open_store(place.store)
    try:
        [issue] = opened.reader.issues(IssueQuery())
    finally:
        opened.close()
    assert (issue.kind.value, issue.culprit.function) == ("boot-hang", "load")


SERVES = """
server = socket.create_server(("127.0.0.1", 0))
asyncio.run(main())
threading.Thread(target=server.accept).start()
print("over", flush=True)
"""


def last_look(path: Path) -> int:
    """When the watchdog looked last."""
    with FlightFile.open(path) as flight:
        return flight.header.heartbeat_ns


def test_a_thread_that_serves_after_the_main_one_is_no_hang(place: Place):
    """From outside: a thread of the program that looked on would be one that goes on."""
    program = place.program(SOON + INSTALL + SERVES)
    environment = place.environment(LOOPCANARY_KEEPER="0")
    process = place.start(program, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"over\n"
    [link] = (place.store / "flight").glob("*.flight")
    before = last_look(link.resolve())
    while last_look(link.resolve()) < before + 2 * PATIENCE_NS:
        time.sleep(0.02)
    process.kill()
    assert process.communicate(timeout=GIVES_UP_S) == (b"", b"")
