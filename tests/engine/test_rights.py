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
@pytest.mark.parametrize(
    ("keeper", "effect"),
    [
        ("1", "keeper failed; what stalls is stored by the next report, and not told before"),
        ("0", "store failed; while it fails stalls are shown and not stored"),
    ],
    ids=["kept", "in the program"],
)
def test_what_a_watched_thread_waits_in_is_read_after_a_drop(place, keeper, effect):
    program = place.program(_DROP + "\n    stall('before'); drop(); waits()")
    done = place.run(program, LOOPCANARY_KEEPER=keeper)
    (told,) = done.stderr.splitlines()
    assert told.startswith(f"loopcanary: {effect}")
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


WAYS = {"by the environment": [], "by run": ["-m", "loopcanary", "run"]}


def run_within(place, words, environment, limit, allowed):
    return subprocess.run(
        [sys.executable, *words],
        env=environment,
        cwd=place.folder,
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=lambda: resource.setrlimit(limit, (allowed, allowed)),
    )


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_a_program_with_few_descriptors_has_them_all(place, way):
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
    plain = run_within(place, [program], place.plain(), resource.RLIMIT_NOFILE, 20)
    watched = run_within(place, [*way, program], place.environment(), resource.RLIMIT_NOFILE, 20)
    assert watched.stdout == plain.stdout
    (line,) = watched.stderr.splitlines()
    assert line.startswith("loopcanary: nothing is watched: 20 descriptors are allowed (ulimit -n)")


@pytest.mark.skipif(
    bool(os.environ.get("LOOPCANARY_TEST_SANITIZE")), reason="the sanitizer reserves more than that"
)
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_a_program_with_little_address_space_has_it_all(place, way):
    program = place.program("asyncio.run(asyncio.sleep(0)); print('over')")
    done = run_within(place, [*way, program], place.environment(), resource.RLIMIT_AS, 64 << 20)
    assert done.stdout == "over\n"
    (line,) = done.stderr.splitlines()
    assert line.startswith("loopcanary: nothing is watched: ")
    assert "MB of address space are left (ulimit -v)" in line
