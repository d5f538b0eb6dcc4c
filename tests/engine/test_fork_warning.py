"""os.fork() in a program of one thread is no fork beside threads (docs/decisions/0004-fork.md)."""

from __future__ import annotations

import sys

import pytest

from .watching import COUNTS_THREADS_LATE, PATIENT_FORKS, PRELUDE

pytestmark = pytest.mark.native

_FORKS = """
    import warnings
    warnings.simplefilter("always")
    told = []
    warnings.showwarning = lambda *facts, **more: told.append(str(facts[0]))

    def fork():
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0

    stall("before")
"""
_PATIENTLY = PRELUDE + PATIENT_FORKS


@pytest.mark.skipif(COUNTS_THREADS_LATE, reason="this CPython counts threads when its fork hooks have run")
@pytest.mark.parametrize("engine", ["native", "portable"])
def test_our_threads_are_not_counted(place, engine):
    program = place.program(
        _FORKS
        + """
    for _ in range(20):
        fork()
    assert not told, told
    stall("after")
    """,
        prelude=_PATIENTLY,
    )
    place.run("-m", "loopcanary", "run", "--quiet", "--engine", engine, "--store", place.store, program)
    assert place.culprits() == ["after", "before"]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="CPython warns from 3.12 on")
def test_the_programs_own_threads_are(place):
    program = place.program(
        _FORKS
        + """
    go_on = threading.Event()
    threading.Thread(target=go_on.wait).start()
    fork()
    go_on.set()
    assert [text for text in told if "multi-threaded" in text], told
    """
    )
    place.run(program)


def test_forks_on_many_threads_at_once(place):
    program = place.program(
        _FORKS
        + """
    warnings.simplefilter("ignore")
    threads = [threading.Thread(target=lambda: [fork() for _ in range(5)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stall("after")
    """
    )
    place.run(program)
    assert place.culprits() == ["after", "before"]


def test_a_stall_goes_on_while_another_thread_forks(place):
    program = place.program(
        _FORKS
        + """
    warnings.simplefilter("ignore")
    begun = threading.Event()

    def elsewhere():
        async def main():
            samples()  # loads what it needs, which is no part of the block
            await asyncio.sleep(0)
            begun.set()
            block("elsewhere", 0.3)
        asyncio.run(main())

    thread = threading.Thread(target=elsewhere)
    thread.start()
    begun.wait()
    for _ in range(10):
        fork()
    thread.join()
    """
    )
    place.run(program)
    assert place.culprits() == ["before", "elsewhere"]


def test_a_slow_interceptor_does_not_delay_a_fork(place):
    program = place.program("""
        import loopcanary
        busy, go_on = threading.Event(), threading.Event()

        parent = os.getpid()

        @loopcanary.on_issue
        def slow(issue):
            if os.getpid() == parent:
                busy.set()
                go_on.wait()
            return issue

        stall("before")
        busy.wait()
        pid = os.fork()
        if pid == 0:
            stall("child")
            sys.exit(0)
        go_on.set()
        assert os.waitpid(pid, 0)[1] == 0
    """)
    place.run(program, PYTHONWARNINGS="ignore")
    assert place.culprits() == ["before", "child"]
