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
                # Where what judges cannot be loaded, nobody knows how many there are.
                time.sleep(4 if before is None else 0.3)
                while None not in (before, now := samples()) and now < before + 5:
                    assert time.monotonic() < gives_up
                    time.sleep(0.05)

        async def main():
            with lock:
                pass

        threading.Thread(target=hold, name="holder").start()
        is_held.wait()
        asyncio.run(main())
"""


_KCMP = {"x86_64": 312, "aarch64": 272}[platform.machine()]
_NOT_STORED = "store failed; while it fails, stalls are shown but not stored"
_NOT_TAKEN = "keeper failed; the next report stores the stalls; they are not shown before"
_NOT_LOADED = "judging failed; stalls are not shown; with the native engine the next report stores them"


@as_root
@pytest.mark.parametrize("keeper", ["1", "0"], ids=["kept", "in the program"])
def test_what_a_watched_thread_waits_in_is_read_after_a_drop(place, keeper):
    program = place.program(_DROP + "\n    stall('before'); drop(); waits()")
    done = place.run(program, LOOPCANARY_KEEPER=keeper)
    (told,) = done.stderr.splitlines()
    # The engine that takes over is loaded after the drop, if its files may be read then.
    assert told.startswith(tuple(f"loopcanary: {one}" for one in (_NOT_STORED, _NOT_LOADED, _NOT_TAKEN)))
    assert "the program changed its user from 0 to 65534" in told
    (stall,) = [one for one in place.stalls() if one.cause is Cause.LOCK]
    assert stall.holder is not None
    assert stall.holder.thread == "holder"
    (session,) = place.sessions().values()
    assert session.statistics["calls_refused"] == 0


@as_root
@pytest.mark.parametrize("way", ["first process", "subreaper", "plain"])
def test_after_a_drop_nothing_with_the_old_rights_is_in_the_programs_memory(place, way):
    """As what ran beside a container's first process once: with its memory, and with root's rights."""
    program = place.program(
        _DROP
        + f"""
    import ctypes
    libc = ctypes.CDLL(None, use_errno=True)
    if {way!r} == "subreaper":
        libc.prctl(36, 1, 0, 0, 0)
    def is_keeper(pid):
        try:
            words = open(f"/proc/{{pid}}/cmdline", "rb").read()
        except OSError:
            return False
        return b"keep\\0--apart\\0" + os.environ["LOOPCANARY_STORE"].encode() in words

    stall("before")
    while not any(is_keeper(pid) for pid in os.listdir("/proc") if pid.isdigit()):
        time.sleep(0.01)
    KCMP, KCMP_VM = {_KCMP}, 1
    shared = [pid for pid in os.listdir("/proc") if pid.isdigit() and int(pid) != os.getpid()
              and libc.syscall(KCMP, os.getpid(), int(pid), KCMP_VM, 0, 0) == 0]
    assert shared == [], shared
    drop()
    users = set()
    for tid in os.listdir("/proc/self/task"):
        try:
            users.add(tuple(open(f"/proc/self/task/{{tid}}/status").read().split("Uid:")[1].split()[:4]))
        except OSError:
            pass  # a thread that has ended
    assert users == {{("65534",) * 4}}, users
    """
    )
    launcher = ["unshare", "--pid", "--fork", "--mount-proc"] if way == "first process" else []
    if subprocess.run([*launcher, "true"], check=False, capture_output=True).returncode:
        pytest.skip("no PID namespace can be made here, as in a chroot")
    words = [*launcher, sys.executable, program]
    done = subprocess.run(
        words, env=place.environment(), check=False, capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 0, done.stderr
    assert place.culprits() == ["before"]


@as_root
def test_what_is_not_to_be_read_after_a_drop_is_said(place):
    program = place.program(
        _DROP
        + """
    stall('before')  # of this thread, all was opened by root
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
        "what 1 thread waited in could not be read: the process was not dumpable (it had changed its user), "
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
    assert line.startswith("loopcanary: nothing is watched: 20 file descriptors are allowed (ulimit -n)")


def test_a_program_without_descriptors_gets_none_of_ours(place):
    """As Twisted's tests do, which take all there are and expect that the next connection fails."""
    program = place.program("""
        import loopcanary, resource
        from pathlib import Path
        from loopcanary.flight import FlightFile

        def of_thread(tid):
            return [entry.name for entry in os.scandir("/proc/self/fd")
                    if f"/task/{tid}/" in os.path.realpath(entry)]

        async def other():
            with loopcanary.expect("5m"):
                block("sampled", 0.02)
            tids.append(threading.get_native_id())
            while not may_end.is_set():
                await asyncio.sleep(0.01)

        async def main():
            thread.start()
            while not tids or not of_thread(tids[0]):
                await asyncio.sleep(0.01)
            (link,) = Path(os.environ["LOOPCANARY_STORE"], "flight").glob("*.flight")
            with FlightFile.open(link.resolve()) as flight:
                taken = []
                try:
                    while True:
                        taken.append(os.dup(0))
                except OSError:
                    may_end.set()
                thread.join()
                looks = set()
                while len(looks) < 5:
                    await asyncio.sleep(0.01)
                    looks.add(flight.header.heartbeat_ns)
                try:
                    os.dup(0)
                except OSError as error:
                    print(error.strerror)
                for descriptor in taken:
                    os.close(descriptor)
                while of_thread(tids[0]):
                    await asyncio.sleep(0.01)

        resource.setrlimit(resource.RLIMIT_NOFILE, (1024, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        tids, may_end = [], threading.Event()
        loop = asyncio.new_event_loop()  # it is not closed, which would make room
        thread = threading.Thread(target=lambda: loop.run_until_complete(other()))
        asyncio.run(main())
    """)
    done = place.run(program, LOOPCANARY_THRESHOLD="100s", LOOPCANARY_SAMPLE_DELAY="5ms")
    assert done.stdout == "Too many open files\n"


def test_a_stall_without_descriptors_is_stored_later(place):
    """What tells it takes some: the program, which closes one for another, would not get that."""
    program = place.program("""
        import resource
        from loopcanary.engine import running

        running._SHORT_PATIENCE_S = 600

        async def main():
            await asyncio.sleep(0)
            taken = []
            try:
                while True:
                    taken.append(os.dup(0))
            except OSError:
                block("without")
            await asyncio.sleep(1)
            assert "without" not in map(name_of, canary.stalls)
            for descriptor in taken:
                os.close(descriptor)
            while "without" not in map(name_of, canary.stalls):
                await asyncio.sleep(0.01)

        import loopcanary
        canary = loopcanary.install()
        samples()
        resource.setrlimit(resource.RLIMIT_NOFILE, (1024, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        asyncio.run(main())
    """)
    done = place.run(program, LOOPCANARY_KEEPER="0")  # which has its own
    assert "store failed" not in done.stderr
    assert place.culprits() == ["without"]


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


LEAVES = """
    import resource

    def leave(megabytes):
        taken = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (taken + (megabytes << 20), resource.RLIM_INFINITY))
"""


@pytest.mark.skipif(
    bool(os.environ.get("LOOPCANARY_TEST_SANITIZE")), reason="the sanitizer reserves more than that"
)
def test_threads_of_tracers_leave_address_space(place):
    program = place.program(f"""
    {LEAVES}
    import loopcanary
    leave(150)
    canary = loopcanary.install(locks=True)
    asyncio.run(asyncio.sleep(0))
    print([path for path in os.listdir("/proc/self/task")].__len__())
    """)
    done = place.run(program, LOOPCANARY="")
    assert done.stderr.startswith("loopcanary: locks and windows are not traced: ")
    assert done.stdout in {"2\n", "3\n"}  # the program's, the watchdog, and the courier, if it has work


def test_a_ring_of_calls_leaves_address_space(place):
    program = place.program(f"""
    {LEAVES}
    import loopcanary
    leave(110)
    loopcanary.install(methods=["."], methods_ring="64MB")
    stall("there")
    """)
    done = place.run(program, LOOPCANARY="")
    assert "loopcanary: methods: there is room for the last " in done.stderr
