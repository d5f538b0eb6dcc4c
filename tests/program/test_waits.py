"""What a thread waits for is told by name: file, peer, child, lock and who holds it.

Each program waits for ever; its flight file is read while it does.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from loopcanary.flight import FlightFile
from loopcanary.model import LockProof, Sample, StallEvidence

from .watching import GIVES_UP_S, PROGRAMS

WAITS = PROGRAMS / "waits.py"
SAMPLES = 4

LOCKS = {
    "rlock": "an RLock that a thread took by acquire",
    "rlock_in_with": "an RLock that a thread took twice by with",
    "lock_in_with": "a lock in whose block a thread stands, other blocks around and within",
    "lock_with_timeout": "the second of three locks, with a timeout",
    "lock_by_bound_method": "a lock by its bound acquire",
    "lock_of_itself": "a lock in whose own block it stands",
    "lock_of_itself_by_managers": "a lock in whose context manager it stands, made of a generator",
    "mutex_of_queue": "the mutex of a queue",
    "lock_of_logging": "the lock of a logging handler",
    "thread": "the end of a thread",
    "import_lock": "a module that another thread imports",
}
HOLDER_UNKNOWN = {
    "lock_held_somehow": "a lock that was taken by acquire",
    "lock_of_two_waiters": "a lock that another thread waits for in with",
    "lock_of_closed_block": "a lock whose block another frame has left",
    "lock_of_condition": "a lock that a condition has let go of inside a block",
    "empty_queue": "an empty queue",
}
TARGETS = {
    "fifo_read": "reading a fifo",
    "fifo_open": "opening a fifo",
    "fifo_open_below_folder": "opening a fifo by a folder's descriptor",
    "locked_file": "flock",
    "terminal": "reading a terminal",
    "plain_pipe": "reading a pipe that no child has",
    "receive": "recv",
    "receive_with_timeout": "recv with a timeout",
    "select_one": "select of one socket",
    "epoll_one": "epoll of one socket",
    "connect": "connect to a peer that does not answer",
    "connect_with_timeout": "connect to a peer that does not answer, with a timeout",
    "accept": "accept",
    "unix_receive": "recv from a unix socket",
    "child": "subprocess.run",
    "child_with_one_pipe": "subprocess.run that reads one pipe",
    "child_with_two_pipes": "subprocess.run that reads two pipes",
    "any_child": "os.wait with one child",
}
UNKNOWN = {
    "not_a_lock_of_ours": "a semaphore of the C library inside a block of a lock",
    "not_the_lock_of_the_block": "the same, while another thread waits for the block's lock",
    "select_two": "select of two sockets",
    "any_of_two_children": "os.wait with two children",
}

pytestmark = pytest.mark.native


def stories(kinds: dict[str, str]):
    return pytest.mark.parametrize("kind", kinds, ids=[text.replace(" ", "-") for text in kinds.values()])


class Waiting:
    """A program in its wait: what it said of it, and the samples that were taken of it."""

    def __init__(self, watched, kind: str, folder: Path) -> None:
        # A session of its own, so that its children can be ended with it.
        self.program = watched.start(WAITS, kind, folder, start_new_session=True)
        try:
            self.said = json.loads(self.program.stdout.readline())
            (link,) = (watched.store / "flight").glob("*.flight")
            self._path = link.resolve()
            with FlightFile.open(self._path) as flight:
                self.samples = self._asleep(flight)
        except BaseException:
            self.end()
            raise

    def _asleep(self, flight: FlightFile) -> list[Sample]:
        """The last samples, all of the wait that it said: the thread has not run between them. On a busy
        machine it may have stood for as long elsewhere: before, or for the GIL."""
        until = time.monotonic() + GIVES_UP_S
        while time.monotonic() < until:
            assert self.program.poll() is None
            for _, evidence in flight.stalls():
                if evidence.end_ns is not None:
                    continue  # not the wait: that does not end
                last = [sample for sample in evidence.samples[-SAMPLES:] if sample.kernel is not None]
                ran = {sample.kernel.on_cpu_ns for sample in last}
                is_it = all(map(self._is_of_the_wait, last))
                if len(last) == SAMPLES and len(ran) == 1 and is_it:
                    return last
            time.sleep(0.02)
        raise AssertionError("the wait does not show in the flight file")

    def _is_of_the_wait(self, sample: Sample) -> bool:
        is_asleep = sample.kernel.syscall is not None and not sample.waits_for_gil
        return is_asleep and sample.at_ns > self.said["after_ns"]

    def until(self, accepts: Callable[[StallEvidence], bool]) -> StallEvidence:
        """The stall, once it is as it shall be: the watchdog looks at it again and again."""
        until = time.monotonic() + GIVES_UP_S
        with FlightFile.open(self._path) as flight:
            while time.monotonic() < until:
                for _, evidence in flight.stalls():
                    if evidence.end_ns is None and accepts(evidence):
                        return evidence
                time.sleep(0.02)
        raise AssertionError("the stall does not become so")

    def end(self) -> None:
        if self.program.poll() is None:
            os.killpg(self.program.pid, signal.SIGKILL)
        self.program.wait()
        self.program.stdout.close()


@pytest.fixture
def waiting(watched, tmp_path):
    """waiting(kind) -> Waiting."""
    started = []

    def start(kind: str) -> Waiting:
        folder = tmp_path / "own"
        folder.mkdir()
        started.append(Waiting(watched(), kind, folder))
        return started[-1]

    yield start
    for program in started:
        program.end()


@stories(LOCKS)
def test_a_lock_is_named_with_its_holder_and_the_holders_stack(waiting, kind):
    program = waiting(kind)
    said = program.said

    for sample in program.samples:
        assert sample.lock is not None
        assert (sample.lock.kind, sample.lock.proof.value) == (said["lock"], said["proof"])
        assert sample.holder_tid == said["tid"]
        assert said["function"] in {frame.qualname.rpartition(".")[2] for frame in sample.holder_stack.frames}
        assert sample.target is None
        frames, number = sample.holder_stack.frames, sample.lock.taken_at
        taken_by = None if number is None else frames[-number].qualname.rpartition(".")[2]
        assert taken_by == (said["function"] if said["lock"] == "lock" else said.get("taken_by"))


def test_the_other_threads_that_wait_for_the_lock_are_named(waiting):
    program = waiting("lock_that_others_wait_for")

    found = program.until(lambda evidence: evidence.waiter_count == 3)
    assert sorted(found.waiters) == sorted(program.said["tids"])


@stories(HOLDER_UNKNOWN)
def test_a_holder_that_cannot_be_proven_is_not_named(waiting, kind):
    program = waiting(kind)

    for sample in program.samples:
        assert sample.lock is not None
        assert (sample.lock.kind, sample.lock.proof) == (program.said["lock"], LockProof.NONE)
        assert (sample.holder_tid, sample.holder_stack) == (None, None)


@stories(TARGETS)
def test_what_a_system_call_waits_for_is_named(waiting, kind):
    program = waiting(kind)
    said = program.said

    for sample in program.samples:
        assert sample.target is not None
        assert (sample.target.kind.value, sample.target.name) == (said["target"], said["name"])
        assert sample.lock is None
        if said.get("is_child"):
            assert is_parent(program.program, sample.target.pid)
        else:
            assert sample.target.pid is None


@stories(UNKNOWN)
def test_what_is_not_known_is_not_guessed(waiting, kind):
    for sample in waiting(kind).samples:
        assert (sample.lock, sample.target) == (None, None)


def is_parent(program: subprocess.Popen[str], child: int) -> bool:
    facts = Path(f"/proc/{child}/stat").read_text()
    return int(facts.rpartition(")")[2].split()[1]) == program.pid
