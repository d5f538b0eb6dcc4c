"""`exit_when_hung`: a process whose loop hangs ends itself, whatever holds the GIL or handles SIGABRT."""

from __future__ import annotations

import signal
import time

import pytest

from loopcanary.model import StallState

from .watching import Place

pytestmark = pytest.mark.native

HANGS = """
import ctypes

def parse():
    # Holds the GIL for longer than anybody waits, whatever signals come, and takes no core from others.
    python, mutex = ctypes.PyDLL(None), ctypes.create_string_buffer(64)
    while True:
        python.pthread_mutex_lock(mutex)

async def main():
    await asyncio.sleep(0)
    asyncio.get_running_loop().call_soon(parse)
    await asyncio.sleep(3600)

asyncio.run(main())
"""
BEFORE = {
    "nothing for it": "",
    "faulthandler": "import faulthandler; faulthandler.enable()\n",
    "a handler in Python": "import signal; signal.signal(signal.SIGABRT, lambda *_: None)\n",
    "ignored": "import signal; signal.signal(signal.SIGABRT, signal.SIG_IGN)\n",
    "blocked": "import signal; signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGABRT})\n",
}


LIMIT = "4s"
"""A machine under load may stop a program that does nothing wrong for two or three."""


@pytest.mark.parametrize("before", BEFORE)
def test_a_process_whose_loop_hangs_ends_itself(place: Place, before: str):
    done = place.run(
        place.program(BEFORE[before] + HANGS),
        status=-signal.SIGABRT,
        LOOPCANARY_EXIT_WHEN_HUNG=LIMIT,
        LOOPCANARY_KEEPER="0",
    )
    (said,) = [line for line in done.stderr.splitlines() if line.startswith("loopcanary: ")]
    assert said.startswith("loopcanary: MainThread (asyncio) has not waited for events for ")
    assert said.endswith(" s, in parse: the process ends itself (exit_when_hung)")
    assert ("Fatal Python error: Aborted" in done.stderr) == (before == "faulthandler")
    (stall,) = [one for one in place.stalls() if one.state is StallState.KILLED]
    assert stall.culprit is not None
    assert stall.culprit.function == "parse"


def test_a_keeper_knows_why(place: Place):
    done = place.run(
        place.program("from loopcanary import keeper\n" + HANGS),
        status=-signal.SIGABRT,
        LOOPCANARY_EXIT_WHEN_HUNG="15s",  # a keeper on a busy host needs seconds to say its piece
        LOOPCANARY_KEEPER="1",
        LOOPCANARY_CONSOLE="1",
    )
    assert " and still in progress, " in done.stderr
    while place.left_behind():  # until the keeper has taken it in, and not we
        time.sleep(0.02)
    (stall,) = [one for one in place.stalls() if one.state is StallState.KILLED]
    assert stall.killed_by is not None
    assert stall.killed_by.signal == "SIGABRT"
    assert stall.killed_by.reason == "loopcanary: a turn of 15 s (exit_when_hung)"


def test_what_waits_or_was_granted_longer_does_not_end(place: Place):
    program = """
    import loopcanary

    async def main():
        await asyncio.sleep(4.5)
        with loopcanary.expect("10m"):
            time.sleep(4.5)  # longer than the limit
        print("goes on")

    asyncio.run(main())
    """
    done = place.run(place.program(program), LOOPCANARY_EXIT_WHEN_HUNG=LIMIT)
    assert done.stdout == "goes on\n"
    assert "ends itself" not in done.stderr


def test_the_portable_engine_says_that_it_cannot(place: Place):
    program = "asyncio.run(asyncio.sleep(0))"
    done = place.run(
        place.program(program),
        LOOPCANARY_EXIT_WHEN_HUNG="1s",
        LOOPCANARY_ENGINE="portable",
        LOOPCANARY_KEEPER="0",
    )
    assert (
        "loopcanary: exit_when_hung needs the native engine: this process will not end itself" in done.stderr
    )
