"""Programs to look at from outside: each says "ready" and then does one thing until it is ended."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

PATIENCE_S = 120.0
"""For what happens at once where the machine has time."""
_T = TypeVar("_T")

_PRELUDE = """\
import asyncio, contextlib, ctypes, os, re, socket, sys, threading, time
with contextlib.suppress(Exception):  # where Yama lets only parents look: this program lets everybody
    ctypes.CDLL(None).prctl(0x59616D61, ctypes.c_ulong(-1), 0, 0, 0)
def ready():
    print("ready", flush=True)
"""

REGEX = """
def handle(text):
    return re.match(r"(a+)+$", text)
ready()
handle("a" * 64 + "b")
"""

DEADLOCK = """
a, b, both = threading.Lock(), threading.RLock(), threading.Barrier(2)
def first():
    with a:
        both.wait()
        with b:
            pass
def second():
    with b:
        both.wait()
        with a:
            pass
threads = [threading.Thread(target=first, name="one")]
threads.append(threading.Thread(target=second, name="two \N{SNOWMAN}"))
for thread in threads:
    thread.start()
ready()
threads[0].join()
"""

DEADLOCK_OF_MANAGERS = f"""
import contextlib
@contextlib.contextmanager
def holding(lock):
    with lock:
        yield
{DEADLOCK.replace("with a:", "with holding(a):")}
"""

DEADLOCK_OF_PROCESS_LOCKS = "import multiprocessing" + re.sub(
    r"threading\.(R?Lock)", r"multiprocessing.\1", DEADLOCK
)

DEADLOCK_WITH_THE_GIL_HELD = f"""
{DEADLOCK_OF_PROCESS_LOCKS.replace("threads[0].join()", "")}
def switches(thread):
    "How often it was given a core; None: it is ready, and waits for one."
    folder = f"/proc/self/task/{{thread.native_id}}"
    if open(f"{{folder}}/stat").read().rpartition(")")[2].split()[0] != "S":
        return None
    return [line for line in open(f"{{folder}}/status") if "ctxt_switches" in line]
# With the GIL free, both sleep on: each waits for the other's lock.
before, still = None, 0
while still < 5:
    time.sleep(0.02)
    now = [switches(thread) for thread in threads]
    still = still + 1 if None not in now and now == before else 0
    before = now
re.match(r"(a+)+$", "a" * 64 + "b")
"""

FULL_QUEUE = """
import multiprocessing
queue = multiprocessing.get_context("fork").Queue(1)
filled = threading.Event()
def fill():
    queue.put(1)
    filled.set()
    time.sleep(600)
threading.Thread(target=fill, name="filler", daemon=True).start()
filled.wait()
ready()
queue.put(2)
"""

LOCK_OF_A_CHILD = """
import multiprocessing
lock = multiprocessing.get_context("fork").Lock()
reading, writing = os.pipe()
if os.fork() == 0:
    with lock:
        os.write(writing, b"1")
        parent = os.getppid()
        while os.getppid() == parent:
            time.sleep(0.2)
    os._exit(0)
os.read(reading, 1)
ready()
lock.acquire()
"""

CIRCLE_WITH_A_TIMEOUT = DEADLOCK.replace("with b:\n            pass", "b.acquire(timeout=3600)")

IDLE_LOOP = """
async def main():
    ready()
    await asyncio.get_running_loop().create_future()
asyncio.run(main())
"""

RECURSION = """
def down(depth):
    if depth:
        down(depth - 1)
    else:
        ready()
        time.sleep(10_000)
sys.setrecursionlimit(10_000)
down(600)
"""

CALM_RECURSION = RECURSION.replace("down(600)", "down(40)")

GIL_WAITERS = """
def holder():
    re.match(r"(a+)+$", "a" * 64 + "b")
ready()
threading.Thread(target=holder).start()
while True:
    time.sleep(0.001)
"""

PEER = """
listening = socket.create_server(("127.0.0.1", 0))
connected = socket.create_connection(listening.getsockname())
print(listening.getsockname()[1], flush=True)
ready()
connected.recv(1)
"""

QUEUE = """
import queue
ready()
queue.Queue().get()
"""

MOVING = """
def left(n):
    return right(n - 1) if n else 0
def right(n):
    return left(n - 1) if n else 0
ready()
while True:
    left(30)
"""


@contextlib.contextmanager
def running(
    source: str, folder: Path, *options: str, python: str = sys.executable, **environ: str
) -> Iterator[subprocess.Popen[str]]:
    """The program, once it has said that it is ready; what it said before is in `said`."""
    script = folder / "target.py"
    script.write_text(_PRELUDE + source, encoding="utf-8")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LOOPCANARY")}
    process = subprocess.Popen(
        [python, *options, str(script)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env={**kept, **environ},
    )
    try:
        assert process.stdout is not None
        process.said = []  # type: ignore[attr-defined]
        while (line := process.stdout.readline()) != "ready\n":
            assert line, process.communicate()
            process.said.append(line.strip())  # type: ignore[attr-defined]
        yield process
    finally:
        process.kill()
        process.communicate()


def until(look: Callable[[], _T | None]) -> _T:
    """What `look` answers once it answers something: the program is on its way there."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        found = look()
        if found is not None:
            return found
        time.sleep(0.02)
    raise AssertionError("the program never came to be as it should")


def other_pythons() -> list[str]:
    """Interpreters of other versions that can be read, where this machine has some."""
    found = {}
    for minor in range(11, 16):
        if minor == sys.version_info.minor:
            continue
        beside = sorted(Path(sys.base_prefix).parent.glob(f"3.{minor}.*/bin/python3"))
        named = shutil.which(f"python3.{minor}")
        for candidate in [*map(str, beside), *([named] if named else [])]:
            if _is_version(candidate, minor):
                found[minor] = candidate
                break
    return list(found.values())


def _is_version(python: str, minor: int) -> bool:
    code = f"import sys; sys.exit(sys.version_info[:2] != (3, {minor}) or 't' in sys.abiflags)"
    try:
        ran = subprocess.run([python, "-c", code], capture_output=True, timeout=PATIENCE_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return ran.returncode == 0
