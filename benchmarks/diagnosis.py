"""What the verdict on one stall costs the drain thread, in CPU time.

On real evidence: a program that stalls for seconds is killed, and its flight file is read and judged again
and again. Its stacks have some 30 frames; how many of them differ makes the cost.
"""

from __future__ import annotations

import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from harness import table

from loopcanary import diagnosis
from loopcanary.flight import FlightFile
from loopcanary.model import Clock, Config, Session, StallEvidence, StallState
from loopcanary.model.wire import session_from_dict

DEPTH = 24
"""Frames of the program's own above those of the loop."""
PLACES = 40
STALLS_S = 6.0
TIMES = 40
BUDGET_MS = 5.0
KINDS = {
    "one stack": "asleep",
    f"some {PLACES} stacks": "computing in places",
    "every stack another": "computing everywhere",
}


def program(kind: str) -> None:
    """Stalls until it is killed."""
    import asyncio

    chance = random.Random(1)
    places = [
        f"def place{n}(x):\n    for _ in range(20_000):\n        x = x * 3 % 7919\n" for n in range(PLACES)
    ]
    names: dict[str, object] = {}
    exec("\n".join(places), names)  # as many functions as a program may have
    work = [names[f"place{n}"] for n in range(PLACES)]

    def deep(depth: int) -> None:
        if depth:
            deep(depth - 1)
        elif kind == "asleep":
            time.sleep(60)
        else:
            while True:
                chance.choice(work)(7)  # type: ignore[operator]

    def everywhere(depth: int) -> None:
        # Of each of the frames, the line is one of two.
        if depth == 0:
            chance.choice(work)(7)  # type: ignore[operator]
        elif chance.random() < 0.5:
            everywhere(depth - 1)
        else:
            everywhere(depth - 1)

    async def main() -> None:
        await asyncio.sleep(0.01)
        print("begun", flush=True)
        while kind == "computing everywhere":
            everywhere(DEPTH)
        deep(DEPTH)

    asyncio.run(main())


def evidence_of(kind: str, folder: Path) -> tuple[StallEvidence, Session, Clock, diagnosis.CodePaths]:
    """What a killed program left of its stall."""
    environment = {**os.environ, "LOOPCANARY": "1", "LOOPCANARY_STORE": str(folder), "LOOPCANARY_QUIET": "1"}
    command = [sys.executable, __file__, "--child", kind]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        # The stall has no end to wait for: how long it is left alone makes how many samples there are, here
        # about as many as are kept.
        time.sleep(STALLS_S)
        process.send_signal(signal.SIGKILL)
    (link,) = (folder / "flight").glob("*.flight")
    with FlightFile.open(link.resolve()) as file:
        facts = file.facts()
        (found,) = [evidence for _, evidence in file.stalls()]
        paths = diagnosis.CodePaths.from_json(facts["code_paths"])
        evidence, clock = found, file.header.clock
    link.resolve().unlink()
    return evidence, session_from_dict(facts), clock, paths


def measure() -> None:
    """Prints the CPU time of a verdict for each kind of evidence."""
    for what, kind in KINDS.items():
        with tempfile.TemporaryDirectory() as folder:
            evidence, session, clock, paths = evidence_of(kind, Path(folder))
        took: list[float] = []
        for _ in range(TIMES):
            begin = time.thread_time_ns()
            diagnosis.diagnose(evidence, session, Config(), clock, state=StallState.ENDED, paths=paths)
            took.append((time.thread_time_ns() - begin) / 1e6)
        stacks = {sample.stack for sample in evidence.samples if sample.stack is not None}
        frames = max(len(stack.frames) for stack in stacks)
        note = f"{len(evidence.samples)} samples, {len(stacks)} stacks of up to {frames} frames"
        table.at_most(f"a verdict, {what}", statistics.median(took), BUDGET_MS, unit="ms", note=note)


if __name__ == "__main__":
    table.run(measure, program)
