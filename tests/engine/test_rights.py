"""Programs that give up rights, or have few: another user, a sandbox, a handful of descriptors."""

from __future__ import annotations

import os
import platform
import resource
import subprocess
import sys

import pytest

from loopcanary.model import Cause
from loopcanary.words.guards import guard_words

from .watching import refusing

pytestmark = pytest.mark.native

as_root = pytest.mark.skipif(os.getuid() != 0, reason="needs root, to become another user")

_DROP = """
    import difflib, encodings.ascii, threading  # loads what another user may not read

    def drop():
        os.setgid(65534)
        os.setuid(65534)

    def waits():
        lock, is_held = threading.Lock(), threading.Event()

        def hold():
            with lock:
                before, gives_up = samples(), time.monotonic() + 60
                is_held.set()
                time.sleep(0.3)
                while samples() == before and time.monotonic() < gives_up:
                    time.sleep(0.05)

        async def main():
            threading.Thread(target=hold, name="holder").start()
            is_held.wait()
            with lock:
                pass

        asyncio.run(main())
"""


@as_root
def test_what_a_watched_thread_waits_in_is_read_after_a_drop(place):
    program = place.program(_DROP + "\n    stall('before'); drop(); waits()")
    done = place.run(program)
    (told,) = done.stderr.splitlines()
    assert told.startswith("loopcanary: store failed; while it fails stalls are shown and not stored")
    assert "the program changed its user from 0 to 65534" in told
    (stall,) = [one for one in place.stalls() if one.cause is Cause.LOCK]
    assert stall.holder is not None
    assert stall.holder.thread == "holder"
    (session,) = place.sessions().values()
    assert session.statistics["calls_refused"] == 0


@as_root
def test_what_is_not_to_be_read_after_a_drop_is_said(place):
    program = place.program(
        _DROP
        + """
    asyncio.run(asyncio.sleep(0))  # it is watched, by root
    drop()
    thread = threading.Thread(target=waits)
    thread.start()
    thread.join()
    """
    )
    place.run(program)
    (session,) = place.sessions().values()
    assert session.statistics["calls_refused"] == 1
    assert (
        "what 1 thread waited in was not to be read: the process was not dumpable (it had changed its user), "
        "or a sandbox refused"
    ) in list(guard_words(session))


_FALLOCATE = {"x86_64": 285, "aarch64": 47}
_FTRUNCATE = {"x86_64": 77, "aarch64": 46}


@pytest.mark.parametrize(
    ("calls", "engine", "lines"),
    [(_FALLOCATE, "native", 0), (_FTRUNCATE, "portable", 1)],
    ids=["room is made by writing", "no file has room"],
)
def test_a_sandbox_that_refuses_to_make_room(place, calls, engine, lines):
    text = """
    asyncio.run(asyncio.sleep(0))  # finds out that the native engine does not start
    stall('first')
    """
    program = place.program(refusing(calls[platform.machine()]) + text)
    done = place.run(program)
    if done.stdout == "no seccomp\n":
        pytest.skip("no seccomp here")
    told = done.stderr.splitlines()
    assert [line.endswith("; the portable one is used") for line in told] == [True] * lines
    assert place.culprits() == ["first"]
    (session,) = place.sessions().values()
    assert session.engine == engine


def test_a_program_with_few_descriptors_has_them_all(place):
    program = place.program(
        """
        asyncio.run(asyncio.sleep(0.01))
        time.sleep(0.2)
        mine = []
        try:
            while True:
                mine.append(os.dup(0))
        except OSError:
            print(mine)
        """
    )

    def run(environment):
        return subprocess.run(
            [sys.executable, program],
            env=environment,
            cwd=place.folder,
            capture_output=True,
            text=True,
            check=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20)),
        )

    plain, watched = run(place.plain()), run(place.environment())
    assert watched.stdout == plain.stdout
    (line,) = watched.stderr.splitlines()
    assert line.startswith("loopcanary: nothing is watched: 20 descriptors are allowed (ulimit -n)")
