"""What fails of ours, or of what is plugged in, never reaches the program: it is told once, and counted."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from contextlib import suppress

import pytest

from loopcanary.model import SessionEnd

from .watching import refusing

pytestmark = pytest.mark.native

_TELL = """
    import json
    canary = loopcanary.install()
    for name in ("first", "second", "third"):
        stall(name)
    loopcanary.uninstall()
    counts = dict(canary.boundary.counts())
    counts.update({key: value for key, value in running.parts.pipeline.counts.items()})
    print(json.dumps(counts))
"""
_REMEMBER = """
    import loopcanary
    from loopcanary.engine import canary as made
    def remember(self, engine, before=None, begin=made.Canary._begin):
        global running
        begin(self, engine, before)
        running = engine
    made.Canary._begin = remember

    def fails(*_arguments, **_more):
        raise LookupError("broken\\non purpose")
"""
BROKEN = {
    "interceptor": ("loopcanary.on_issue(fails)", "interceptor fails", 1),
    "reporter": (
        """
    class Reporter:
        name = "broken"
        report = close = fails
    from loopcanary.registry import REGISTRY, REPORTERS
    REGISTRY.add(REPORTERS, "broken", lambda run: Reporter())""",
        "reporter broken",
        1,
    ),
    "maker of a reporter": (
        """
    from loopcanary.registry import REGISTRY, REPORTERS
    REGISTRY.add(REPORTERS, "broken", fails)""",
        "reporter broken",
        1,
    ),
    "store": ("from loopcanary.store import Store; Store.put_issue = fails", "store", 3),
    "diagnosis": ("from loopcanary.diagnosis import judgement; judgement.diagnose = fails", "diagnosis", 3),
    "reader of the flight file": (
        "from loopcanary.flight import FlightFile; FlightFile.stalls = fails",
        "drain",
        1,
    ),
    "sums of the lanes": ("from loopcanary.flight import FlightFile; FlightFile.lanes = fails", "totals", 1),
    "closing of the store": ("from loopcanary.store import Store; Store.close = fails", "store", 1),
    "recovery": ("from loopcanary.assembly import engine; engine._recover = fails", "recovery", 1),
    "cause": (
        """
    from loopcanary.registry import CAUSES, REGISTRY
    REGISTRY.add(CAUSES, "broken", fails)""",
        "cause broken",
        1,
    ),
    "probe": (
        "from loopcanary.probes.asyncio import AsyncioProbe; AsyncioProbe.uninstall = fails",
        "probe asyncio",
        1,
    ),
}


@pytest.mark.parametrize(("text", "part", "times"), BROKEN.values(), ids=BROKEN)
def test_a_broken_part(place, text, part, times):
    program = place.program(_REMEMBER + "\n    " + text.lstrip() + "\n" + _TELL)
    # A keeper has its parts in a process of its own.
    done = place.run(program, LOOPCANARY="", LOOPCANARY_KEEPER="0")
    lines = [line for line in done.stderr.splitlines() if line.startswith("loopcanary: ")]
    assert [line for line in lines if line.startswith(f"loopcanary: {part} failed")] == lines
    assert len(lines) == 1
    assert "LookupError: broken on purpose" in lines[0]
    counts = json.loads(done.stdout)
    assert counts[f"failures_{part}"] >= times


def test_failures_are_among_the_statistics(place):
    program = place.program(
        _REMEMBER
        + """
    loopcanary.on_issue(fails)
    told = threading.Event()
    loopcanary.on_issue(lambda issue: (told.set(), issue)[1])
    stall("first")
    told.wait()
    assert loopcanary.statistics()["failures_interceptor fails"] == 1
    """
    )
    place.run(program, LOOPCANARY_KEEPER="0")
    assert place.culprits() == ["first"]


@pytest.mark.parametrize("engine", ["native", "portable"])
def test_a_plugin_that_ends_the_thread_is_off(place, engine):
    program = place.program(
        """
    import loopcanary
    told = threading.Event()
    def leaves(issue):
        sys.exit("not from here")
    loopcanary.on_issue(leaves)
    loopcanary.on_issue(lambda issue: (told.set(), issue)[1])
    for name in ("first", "second"):
        told.clear()
        stall(name)
        told.wait()
    assert loopcanary.statistics()["failures_interceptor leaves"] == 1
    """
    )
    done = place.run(program, LOOPCANARY_ENGINE=engine)
    assert done.stderr.count("loopcanary: ") == 1
    assert "interceptor leaves failed and is switched off: SystemExit: not from here" in done.stderr
    assert sorted(place.culprits()) == ["first", "second"]


def test_a_program_with_logging_gets_the_message_there(place):
    program = place.program(
        _REMEMBER
        + """
    import logging
    logging.basicConfig(stream=sys.stdout, format="%(name)s %(levelname)s %(message)s")
    loopcanary.on_issue(fails)
    stall("first")
    loopcanary.uninstall()
    """
    )
    done = place.run(program, LOOPCANARY_KEEPER="0")
    assert done.stdout == (
        "loopcanary WARNING loopcanary: interceptor fails failed and is switched off: "
        "LookupError: broken on purpose\n"
    )
    assert done.stderr == ""


def test_a_stderr_without_a_reader_holds_up_nothing(place):
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with suppress(BlockingIOError):
        while os.write(writer, bytes(4096)):
            continue
    os.set_blocking(writer, True)
    program = place.program("stall('first'); stall('second'); os._exit(0 if print('over') is None else 1)")
    ends = place.program("stall('first'); stall('second'); print('over', flush=True)", name="ends.py")
    for path in (program, ends):
        environment = place.environment(LOOPCANARY_CONSOLE="1")
        process = place.start(path, env=environment, stdout=subprocess.PIPE, stderr=writer)
        assert process.wait(timeout=280) == 0
    os.close(reader)
    os.close(writer)


def test_a_stuck_interceptor_delays_the_end_for_seconds(place):
    program = place.program("""
        import loopcanary
        busy = threading.Event()

        @loopcanary.on_issue
        def stuck(issue):
            busy.set()
            threading.Event().wait()

        stall("first")
        busy.wait()
        print("over", flush=True)
    """)
    done = place.run(program)
    assert done.stdout == "over\n"
    assert "did not end in time" in done.stderr
    assert place.culprits() == ["first"], "what was not stored is recovered"


def test_a_drain_that_is_late_leaves_the_next_engine_alone(place):
    program = place.program("""
        import loopcanary
        from loopcanary import _native
        from loopcanary.engine import drain
        drain._FINISH_S = 0.1
        busy, go_on = threading.Event(), threading.Event()

        @loopcanary.on_issue
        def slow(issue):
            busy.set()
            go_on.wait()
            return issue

        stall("first")
        busy.wait()
        late = loopcanary.install()._engine.drain._turn.thread
        loopcanary.uninstall()
        loopcanary.install()
        stall("second")
        go_on.set()
        assert late.join(200)
        assert _native.is_running()
        stall("third")
    """)
    place.run(program)
    assert place.culprits() == ["first", "second", "third"]


def test_a_late_drain_removes_only_what_it_took(place):
    program = place.program("""
        import loopcanary
        from loopcanary.engine import drain
        drain._FINISH_S = 0.1
        busy, go_on = threading.Event(), threading.Event()

        @loopcanary.on_issue
        def slow(issue):
            busy.set()
            go_on.wait()
            return issue

        stall("first")
        busy.wait()
        stall("second")
        late = loopcanary.install()._engine.drain._turn.thread
        loopcanary.uninstall()
        go_on.set()
        assert late.join(200)
    """)
    place.run(program)
    assert place.culprits() == ["first", "second"]


def test_an_unstored_session_is_left_to_the_next_start(place):
    program = place.program("""
        import sqlite3
        from loopcanary.store.sqlite import database
        stall("first")
        database._PATIENCE_S = 0.1
        asyncio.run(asyncio.sleep(0.01))
        import loopcanary
        canary = loopcanary.install()
        while canary.kept is not None:
            time.sleep(0.01)
        parts = canary._engine.parts
        while not parts.pipeline.recent:
            time.sleep(0.01)
        path = os.environ["LOOPCANARY_STORE"] + "/loopcanary.db"
        other = sqlite3.connect(path, timeout=60, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        loopcanary.uninstall()
    """)
    done = place.run(program, LOOPCANARY_KEEPER="0")  # a keeper stores it when it can
    assert "is locked by another process" in done.stderr
    (session,) = place.sessions().values()
    assert session.end is SessionEnd.EXIT
    assert session.loops


def test_uninstalled_by_an_interceptor(place):
    program = place.program("""
        import loopcanary
        gone = threading.Event()

        @loopcanary.on_issue
        def leave(issue):
            if issue.culprit and issue.culprit.function == "first":
                loopcanary.uninstall()
                gone.set()
            return issue

        stall("first")
        gone.wait()
        stall("second")
    """)
    place.run(program)
    assert place.culprits() == ["first"]


def test_a_stall_in_hand_survives_an_interceptor_that_uninstalls(place):
    program = place.program("""
        import loopcanary
        gone = threading.Event()

        @loopcanary.on_issue
        def leave(issue):
            if issue.culprit and issue.culprit.function == "first":  # a busy machine may have others before
                loopcanary.uninstall()
                gone.set()
                threading.Event().wait()
            return issue

        stall("first")
        gone.wait()
    """)
    place.run(program)
    assert place.culprits() == ["first"]


def test_an_interceptor_that_never_ends_holds_up_no_exit(place):
    program = place.program("""
        import loopcanary
        from loopcanary.engine import canary
        canary._STOP_PATIENCE_S = 0.2
        both, gone = threading.Event(), threading.Event()

        @loopcanary.on_issue
        def leave(issue):
            both.wait()
            loopcanary.uninstall()  # the other stall comes here in the middle of it
            gone.set()
            threading.Event().wait()

        stall("first")
        stall("second")
        both.set()
        gone.wait()
    """)
    place.run(program, LOOPCANARY_KEEPER="0")
    assert place.culprits() == ["first", "second"]


@pytest.mark.parametrize("failure", ["RuntimeError", "OSError"])
def test_an_engine_that_does_not_start(place, failure):
    program = place.program(f"""
        import loopcanary._native
        def start(**settings):
            raise {failure}("not today")
        loopcanary._native.start = start
        asyncio.run(asyncio.sleep(0))
        stall("second")
        import loopcanary
        print(sorted(loopcanary.statistics())[:1])
    """)
    done = place.run(program)
    (line,) = done.stderr.splitlines()
    assert line.endswith("not today; the portable one is used")
    # The first loop ran under the native probe's patches when the engine turned out not to start.
    assert "second" in place.culprits()
    (session,) = place.sessions().values()
    assert session.engine == "portable"


# process_vm_readv, and process_vm_writev that follows on it.
_SECCOMP = refusing({"x86_64": 310, "aarch64": 270}.get(platform.machine(), 0), 2)


def test_a_sandbox_that_refuses_to_copy_memory(place):
    program = place.program(
        _SECCOMP
        + """
    stall("first")
    """
    )
    done = place.run(program)
    if done.stdout == "no seccomp\n":
        pytest.skip("no seccomp here")
    assert done.stderr == ""
    assert place.culprits() == ["first"]
    (session,) = place.sessions().values()
    assert session.engine == "native"


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, to become somebody else")
def test_a_sandbox_that_refuses_proc_self_mem_as_well(place, public_folder):
    text = """
    import loopcanary, loopcanary.portable.backend, loopcanary.probes.asyncio.portable
    stall("before")  # loads what another user may not read
    loopcanary.uninstall()
    """
    program = place.program(
        text
        + _SECCOMP
        + """
    os.setgid(65534)
    os.setuid(65534)
    libc = ctypes.CDLL(None)
    assert libc.prctl(4, 0, 0, 0, 0) == 0  # PR_SET_DUMPABLE: /proc/self belongs to root then
    try:
        open("/proc/self/mem").close()
    except PermissionError:
        pass
    else:
        print("no seccomp")
        sys.exit()
    loopcanary.install(store=sys.argv[1])
    stall("first")
    """
    )
    public_folder.chmod(0o777)
    done = place.run(program, public_folder / "second", LOOPCANARY_KEEPER="0")
    if done.stdout == "no seccomp\n":
        pytest.skip("no seccomp here")
    (line,) = done.stderr.splitlines()
    assert line.startswith("loopcanary: native engine failed")
    assert line.endswith("the portable one is used")
    assert place.culprits(public_folder / "second") == ["first"]


def test_a_process_without_threads_to_give(place):
    """RLIMIT_NPROC does not bind root: the start of a thread is made to fail instead."""
    program = place.program("""
        import loopcanary._native
        def no_thread(function):
            raise OSError(11, "no thread")
        loopcanary._native.start_thread = no_thread
        stall("first")
    """)
    done = place.run(program, LOOPCANARY_KEEPER="0")  # else it needs none
    (line,) = done.stderr.splitlines()
    assert line.startswith("loopcanary: judging failed")
    assert line.endswith("no thread")
    assert place.culprits() == ["first"]


def test_a_setting_that_is_wrong_is_one_line(place):
    done = place.run("-c", "import asyncio; print('runs')", LOOPCANARY_THRESHOLD="soon")
    assert done.stdout == "runs\n"
    assert len(done.stderr.splitlines()) == 1
    assert "LOOPCANARY_THRESHOLD" in done.stderr
    assert sys.executable
