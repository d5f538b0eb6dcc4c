"""A forked child, which may become another user, keeps nothing of its parent's files."""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.native
PROGRAM = """
import ctypes, json
import loopcanary
from loopcanary.engine import recorder

recorder.HANG_NS = 120_000_000  # of a hang there is a copy on disk
canary = loopcanary.install(methods="__main__", startup=True)

def kept():
    # Files of loopcanary's, and of /proc, that are mapped or open.
    names = [line.split(maxsplit=5)[-1].strip() for line in open("/proc/self/maps")]
    for number in os.listdir("/proc/self/fd"):
        try:
            names.append(os.readlink(f"/proc/self/fd/{number}"))
        except OSError:
            pass
    kinds = "/loopcanary-", ".saved", "/proc/"
    return sorted({name for name in names if any(kind in name for kind in kinds)})

async def short():
    await asyncio.sleep(0.01)

def be_child(says):
    told = [kept()]
    asyncio._set_running_loop(None)
    asyncio.new_event_loop().run_until_complete(short())
    told.append([name for name in kept() if name[:6] != "/proc/" and f"-{os.getpid()}-" not in name])
    os.write(says, json.dumps(told).encode())

def told_by_child(fork):
    hears, says = os.pipe()
    # While it judges it reads from descriptors that a child may get: for reading, and closed by an exec.
    assert canary._engine.drain.rest(60)
    pid = fork()
    if pid == 0:
        try:
            be_child(says)
        finally:
            os._exit(0)
    os.close(says)
    with open(hears) as pipe:
        told = json.load(pipe)
    assert os.waitpid(pid, 0)[1] == 0
    if fork is not os.fork:  # that one starts it again
        canary._engine.drain.start()
    return told

def files():
    # Of /proc our threads open some for a moment.
    return [name for name in kept() if name[:6] != "/proc/"]

def tell():
    mine = files()
    print(json.dumps([mine, told_by_child(os.fork), told_by_child(ctypes.PyDLL(None).fork), files() == mine]))

async def main():
    await asyncio.sleep(0)
    while loopcanary.statistics()["checkpoints_written"] == 0:
        block("hang", 0.5)
        await asyncio.sleep(0)
    asyncio.get_running_loop().call_soon(tell)  # in a task, asyncio 3.14 runs no other one in the child
    await asyncio.sleep(0)

asyncio.run(main())
"""


def test_a_child_has_nothing_of_its_parents_files(place):
    done = place.run(place.program(PROGRAM), LOOPCANARY_KEEPER="0")
    mine, of_python, of_c, is_kept = json.loads(done.stdout)
    endings = {name.rpartition("/")[2].partition(".")[2] for name in mine}
    assert {"flight", "flight.calls-0", "flight.start", "flight.patches", "saved"} <= endings
    assert of_python == [[], []]
    assert of_c == [[], []]
    assert is_kept
