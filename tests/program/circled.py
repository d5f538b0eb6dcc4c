"""What the tests of threads that wait for each other share."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from loopcanary.flight import FlightFile
from loopcanary.model import StallEvidence

from .watching import GIVES_UP_S

MAIN = "MainThread"


@pytest.fixture
def stalled(watched, tmp_path):
    """stalled(program, kind, accepts) -> the first stall that `accepts`, of a program that waits."""
    programs: list[subprocess.Popen[str]] = []

    def seen(path: Path, kind: str, accepts: Callable[[StallEvidence], bool]) -> StallEvidence:
        canary = watched()
        # A session of its own, so that its children are ended with it.
        program = canary.start(path, kind, tmp_path, start_new_session=True)
        programs.append(program)
        assert program.stdout.readline() == "waits\n"
        (link,) = (canary.store / "flight").glob("*.flight")
        until = time.monotonic() + GIVES_UP_S
        with FlightFile.open(link.resolve()) as flight:
            while time.monotonic() < until and program.poll() is None:
                for _, evidence in flight.stalls():
                    if evidence.end_ns is None and accepts(evidence):
                        return evidence
                time.sleep(0.02)
        raise AssertionError(f"not seen of {kind}")

    yield seen
    for program in programs:
        os.killpg(program.pid, signal.SIGKILL)
        program.wait()
        program.stdout.close()


def is_in_circle(evidence: StallEvidence) -> bool:
    return bool(evidence.samples) and evidence.samples[-1].in_circle


def assert_circle(evidence: StallEvidence, waits: list[tuple[str, str, str]], gives_up: list[str]) -> None:
    """Who waits for which lock of whom; `gives_up`: those whose wait has a timeout."""
    names = {**dict(evidence.thread_names), evidence.tid: MAIN}
    found = [(names[wait.tid], wait.lock.kind, names[wait.holder_tid]) for wait in evidence.circle]
    assert found == waits
    assert [names[wait.tid] for wait in evidence.circle if wait.has_timeout] == gives_up
    assert all(wait.stack is not None and wait.stack.frames for wait in evidence.circle)
    assert not evidence.samples[0].in_circle


def assert_no_circle(evidence: StallEvidence) -> None:
    assert not any(sample.in_circle for sample in evidence.samples)
    assert evidence.circle == ()
