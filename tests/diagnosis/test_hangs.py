"""What is said of a program that does not start or end: where the main thread is, and for whom it waits."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.diagnosis.cases import (
    APP,
    CLOCK,
    PATHS,
    SESSION,
    STDLIB,
    Texts,
    at,
    evidence,
    frame,
    samples,
    stack,
)

from loopcanary.diagnosis import find_hang
from loopcanary.model import Cause, Config, IssueKind, StallScope, Target, TargetKind, ThreadStack
from loopcanary.protocols.kinds import kind_of

SOURCE = "def work():\n    jobs.get()\n"
POOL = f"{STDLIB}/concurrent/futures/thread.py"
WAIT = frame("Condition.wait", f"{STDLIB}/threading.py", 327)
WORK = at("jobs.get()", SOURCE, function="work")
SHUTDOWN = frame("_shutdown", f"{STDLIB}/threading.py", 1590)
POOL_END = (WAIT, frame("_python_exit", POOL, 31), SHUTDOWN)
RUN = frame("Runner.close", f"{STDLIB}/asyncio/runners.py", 71)
WORKER, IDLE = frame("_worker", POOL, 83), (frame("_worker", POOL, 81),)
WAITS_FOR_POOL = (WAIT, frame("ThreadPoolExecutor.shutdown", POOL, 235))
BOOT, EXIT = IssueKind.BOOT_HANG, IssueKind.EXIT_HANG
SAID = "the program does not end: "


def found(main, *others, kind=EXIT, holder=None, **more):
    """Other threads: name and frames."""
    threads = [
        ThreadStack(tid=40 + number, at_ns=0, name=name, stack=stack(*frames, loop=False))
        for number, (name, frames) in enumerate(others)
    ]
    taken = samples(stack(*main, loop=False), holder_tid=holder, **more)
    told = replace(evidence(taken), scope=StallScope.THREAD, threads=tuple(threads), hang=kind, tid=7)
    return find_hang(told, SESSION, Config(), CLOCK, sources=Texts(app=SOURCE), paths=PATHS)


@pytest.mark.parametrize(
    ("hang", "title"),
    [
        pytest.param(
            found((WAIT, SHUTDOWN), ("jobs", (WAIT, WORK)), ("other", (WAIT, WORK)), holder=40),
            f"{SAID}threading._shutdown waits for thread jobs, in work (app.py:2)",
            id="the thread that is joined is named where the lock says so",
        ),
        pytest.param(
            found((WAIT, SHUTDOWN), ("jobs", (WAIT, WORK)), ("other", (WAIT, WORK))),
            f"{SAID}threading._shutdown waits for one of 2 threads: thread jobs, thread other",
            id="where it is not known which one is joined, none is accused",
        ),
        pytest.param(
            found(POOL_END, ("pool_1", IDLE), ("pool_0", (WAIT, WORK, WORKER)), ("daemon", (WAIT, WORK))),
            f"{SAID}the end of concurrent.futures waits for thread pool_0, in work (app.py:2)",
            id="an executor waits for its busy threads only",
        ),
        pytest.param(
            found(
                (frame("EpollSelector.select", f"{STDLIB}/selectors.py", 468), RUN),
                ("pool_0", (WAIT, WORK, WORKER)),
                ("Thread-1", WAITS_FOR_POOL),
                ("asyncio_0", (WAIT, WORK, WORKER)),
                holder=40,
            ),
            f"{SAID}asyncio.run waits for thread pool_0, in work (app.py:2)",
            id="asyncio waits for its executor's threads",
        ),
        pytest.param(
            found((WAIT, WORK, frame("close_all"))),
            f"{SAID}the exit function close_all waits, in work (app.py:2)",
            id="an exit function hangs itself",
        ),
        pytest.param(
            found(
                (
                    at("jobs.get()", SOURCE, function="load"),
                    frame("_find_and_load", "<frozen importlib._bootstrap>"),
                ),
                kind=BOOT,
                target=Target(kind=TargetKind.SOCKET, name="10.0.0.5:80"),
            ),
            "an import has not ended: it waits for socket to 10.0.0.5:80, in load (app.py:2)",
            id="an import waits for a peer",
        ),
    ],
)
def test_the_title_says_who_waits_for_what(hang, title):
    assert kind_of(hang).title(hang) == title
    assert hang.cause is (Cause.LOCK if isinstance(hang, type(found((WORK,)))) else Cause.IMPORT)
    assert hang.duration_ns == 30_000_000


def test_the_line_to_change_is_quoted():
    hang = found((WAIT, SHUTDOWN), ("jobs", (WAIT, WORK)))
    assert (hang.culprit.file, hang.culprit.line, hang.culprit.source) == (APP, 2, "jobs.get()")
    [view] = hang.threads
    assert (view.name, view.tid, hang.where) == ("jobs", 40, "threading._shutdown")


@pytest.mark.parametrize(
    "hang",
    [
        pytest.param(found((WAIT, SHUTDOWN)), id="no other thread is there"),
        pytest.param(found(POOL_END, ("pool_0", IDLE)), id="all threads of the executor are idle"),
        pytest.param(found(POOL_END, ("loopcanary-drain", (WAIT, WORK, WORKER))), id="the thread is our own"),
        pytest.param(found(()), id="the main thread's stack is not known"),
    ],
)
def test_nothing_is_said_where_it_is_not_known_what_is_waited_for(hang):
    assert hang is None
