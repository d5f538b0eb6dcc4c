"""Rings of calls beside a program's own shared memory, in a folder as small as a container's."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap

import pytest

GIVES_UP_S = 280
SMALL = ("unshare", "--mount", "sh", "-c", 'mount -t tmpfs -o size=64m none /dev/shm && exec "$@"', "sh")


def may_mount() -> bool:
    if os.geteuid() or shutil.which("unshare") is None:
        return False
    return subprocess.run((*SMALL, "true"), capture_output=True, check=False).returncode == 0


pytestmark = [
    pytest.mark.native,
    pytest.mark.skipif(not may_mount(), reason="needs root, unshare and its mount namespace"),
]
THREADS = """
import asyncio, json, os, subprocess, sys, threading
from multiprocessing import shared_memory
from pathlib import Path

def work(number):
    return number and work(number - 1)

async def loop():
    work(5)
    await asyncio.sleep(0)
    await asyncio.to_thread(all_run.wait)

def run_loops(count):
    global all_run
    all_run = threading.Barrier(count + 1)
    threads = [threading.Thread(target=lambda: asyncio.run(loop())) for _ in range(count)]
    for thread in threads:
        thread.start()
    all_run.wait()
    for thread in threads:
        thread.join()
"""
TAKES_MEMORY = """
run_loops(8)
mine = shared_memory.SharedMemory(create=True, size=40 << 20)
mine.buf[:] = b"x" * len(mine.buf)
mine.close()
mine.unlink()
print("over")
"""
OF_MANY = """
if len(sys.argv) > 1:
    run_loops(16)
    print("all run", flush=True)
    sys.stdin.read()
    sys.exit()

words = (sys.executable, "-m", "loopcanary", "run", "--methods", ".", sys.argv[0], "one")
pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
programs = [subprocess.Popen(words, **pipes) for _ in range(8)]
for program in programs:
    program.stdout.readline()
taken = [(path.suffix[:6], path.stat().st_blocks * 512) for path in Path("/dev/shm").iterdir()]
free = os.statvfs("/dev/shm")
for program in programs:
    program.communicate()
print(json.dumps({
    "rings": sum(size for suffix, size in taken if suffix == ".calls"),
    "files": sum(suffix == ".fligh" for suffix, _ in taken),
    "free": free.f_bavail * free.f_frsize,
    "statuses": [program.returncode for program in programs],
}))
"""


def run(folder, text, *words):
    (folder / "app.py").write_text(THREADS + text)
    clean = {name: value for name, value in os.environ.items() if not name.startswith("LOOPCANARY")}
    return subprocess.run(
        [*SMALL, sys.executable, *words, "app.py"],
        cwd=folder,
        env=clean,
        capture_output=True,
        text=True,
        timeout=GIVES_UP_S,
        check=True,
    )


def test_the_programs_own_shared_memory_has_room(tmp_path):
    done = run(tmp_path, TAKES_MEMORY, "-m", "loopcanary", "run", "--methods", ".")
    assert done.stdout == "over\n"
    (said,) = [line for line in done.stderr.splitlines() if line.startswith("loopcanary: methods: ")]
    assert said.startswith("loopcanary: methods: fewer calls of some threads are kept, or none: ")


def test_rings_of_eight_processes_take_a_quarter(tmp_path):
    told = json.loads(run(tmp_path, OF_MANY).stdout)
    assert 15 << 20 < told["rings"] <= 16 << 20
    assert told["free"] > 24 << 20
    assert told["files"] == 8
    assert told["statuses"] == [0] * 8


def test_where_there_is_no_room_for_a_ring_it_says_so(tmp_path):
    text = """
    with open("/dev/shm/loopcanary-0-x.flight.calls-0", "wb") as ring:
        os.posix_fallocate(ring.fileno(), 0, 16 << 20)
    import loopcanary
    loopcanary.install(methods=["."], store="store")
    run_loops(1)
    print("over")
    """
    done = run(tmp_path, textwrap.dedent(text))
    assert done.stdout == "over\n"
    assert "no ring could be made (No space left on device): a process has at most 16 rings" in done.stderr
