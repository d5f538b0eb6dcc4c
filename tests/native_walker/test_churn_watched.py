"""The whole engine, on threads that do their worst: what its flight file holds of them did happen."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from loopcanary.engine import scopes
from loopcanary.flight import FlightFile
from loopcanary.model.evidence import StallEvidence
from loopcanary.model.stack import Stack

from . import churn

pytestmark = pytest.mark.native

SECONDS = float(os.environ.get("LOOPCANARY_CHURN_SECONDS", "4"))
ROUND_S = 0.1
PROGRAM = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("churn", sys.argv[1])
churn = importlib.util.module_from_spec(spec)
sys.modules["churn"] = churn
spec.loader.exec_module(churn)
import loopcanary
loopcanary.install(
    engine="native", store=sys.argv[2], console="off",
    threshold="5ms", sample_delay="1ms", sample_interval="1ms",
)
sys.setswitchinterval(0.0005)
print("ready", flush=True)
rounds = churn.run_watched(loopcanary.watch, float(sys.argv[3]), float(sys.argv[4]))
print(rounds, loopcanary.statistics()["stalls_recorded"], flush=True)
"""


def stacks(evidence: StallEvidence, workers: set[int]) -> Iterator[Stack]:
    """Of the churning threads; the main thread and ours, which may hold the GIL, are nobody's program."""
    for sample in evidence.samples:
        if sample.stack is not None and evidence.tid in workers:
            yield sample.stack
        if sample.holder_stack is not None and sample.holder_tid in workers:
            yield sample.holder_stack


def sampled(stack: Stack) -> tuple[list[churn.Frame], bool]:
    frames = [(frame.qualname, frame.file, frame.line, frame.first_line) for frame in stack.frames]
    return frames, stack.truncated


def test_no_stack_in_the_flight_file_never_existed(tmp_path: Path) -> None:
    store = tmp_path / "store"
    words = [sys.executable, "-c", PROGRAM, churn.__file__, str(store), str(SECONDS), str(ROUND_S)]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("LOOPCANARY")}
    judge = churn.Judge(scopes)
    judged: set[Stack] = set()
    faults = []
    with subprocess.Popen(words, env=clean, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "ready\n"
        (link,) = (store / "flight").glob("*.flight")
        flight = FlightFile.open(link.resolve())
        try:
            while program.poll() is None:
                evidence = [evidence for _, evidence in flight.stalls()]
                workers = {lane.tid for lane in flight.lanes() if lane.loop_kind == "thread"}
                for stall in evidence:
                    new = set(stacks(stall, workers)) - judged
                    judged |= new
                    faults += filter(None, (judge.fault(sampled(stack)) for stack in new))
                time.sleep(ROUND_S / 5)
        finally:
            flight.close()
        rounds, recorded = map(int, program.stdout.read().split())
    assert program.returncode == 0
    print(f"{rounds} rounds, {recorded} stalls, {len(judged)} different stacks")  # noqa: T201 - its result
    assert faults == []
    assert recorded > 0
    assert len(judged) > 10
