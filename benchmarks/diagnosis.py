"""What one stall costs the drain thread, in CPU time: the verdict, and all from the flight file to the store.

On real evidence: a program that stalls for seconds is killed, and its flight file is read and judged again
and again. Its stacks have some 30 frames; how many of them differ makes the cost.
"""

from __future__ import annotations

import itertools
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from harness import table

from loopcanary import diagnosis
from loopcanary.engine import Boundary
from loopcanary.flight import FlightFile
from loopcanary.model import Clock, Config, Session, Stall, StallEvidence, StallState
from loopcanary.pipeline.guards import DebuggerGuard, StormGuard
from loopcanary.pipeline.pipeline import Pipeline, Stations
from loopcanary.reporters.console import ConsoleReporter
from loopcanary.reporters.terminal import Terminal
from loopcanary.source_text import FileSources
from loopcanary.store import Store
from loopcanary.wire import from_wire

DEPTH = 24
"""Frames of the program's own above those of the loop."""
PLACES = 40
STALLS_S = table.sized(6.0, 0.7)
TIMES = table.sized(40, 1)
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


def flight_of(kind: str, folder: Path) -> Path:
    """The flight file that a program left which was killed in its stall."""
    environment = {
        **os.environ,
        "LOOPCANARY": "1",
        "LOOPCANARY_STORE": str(folder),
        "LOOPCANARY_CONSOLE": "off",
    }
    environment["LOOPCANARY_KEEPER"] = "0"  # it would take the file
    command = [sys.executable, __file__, "--child", kind]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        # The stall has no end to wait for: how long it is left alone makes how many samples there are, here
        # about as many as are kept.
        time.sleep(STALLS_S)
        process.send_signal(signal.SIGKILL)
    (link,) = (folder / "flight").glob("*.flight")
    return link.resolve()


def cost_ms(work: Callable[[], object]) -> float:
    """The median of its CPU times."""
    took: list[float] = []
    for _ in range(TIMES):
        begin = time.thread_time_ns()
        work()
        took.append((time.thread_time_ns() - begin) / 1e6)
    return statistics.median(took)


def pipeline_of(
    session: Session, clock: Clock, paths: diagnosis.CodePaths, folder: Path, descriptor: int
) -> Pipeline:
    """The stations of a stall, with a real store and a console whose text is thrown away."""
    now_ns = time.monotonic_ns()
    stations = Stations(
        config=Config(),
        clock=clock,
        session=lambda: session,
        paths=lambda: paths,
        sources=FileSources(),
        add_calls=lambda stall, _: stall,
        interceptors=(lambda stall: stall,),
        sink=Store(folder / "drained"),
        reporters=(ConsoleReporter(terminal=Terminal(descriptor)),),
        debugger=DebuggerGuard(),
        storm=StormGuard(10**9, now_ns),
        issue_storm=StormGuard(10**9, now_ns),
    )
    return Pipeline(stations, Boundary(print), time.monotonic_ns)


def measure_kind(what: str, kind: str, folder: Path, descriptor: int) -> None:
    """Two rows: the verdict alone, and a stall's whole way."""
    path = flight_of(kind, folder)
    with FlightFile.open(path) as file:
        facts, clock = file.facts(), file.header.clock
        session, paths = from_wire(Session, facts), diagnosis.CodePaths.from_json(facts["code_paths"])

        def judge(evidence: StallEvidence, state: StallState) -> Stall:
            return diagnosis.diagnose(evidence, session, Config(), clock, state=state, paths=paths)

        ((_, evidence),) = file.stalls()
        verdict_ms = cost_ms(lambda: judge(evidence, StallState.ENDED))
        pipeline, serial = pipeline_of(session, clock, paths, folder, descriptor), itertools.count(1)

        def whole() -> None:
            ((_, read),) = file.stalls()
            # Each is another stall, that ended: those that go on are told again and again.
            pipeline.judge(replace(read, serial=next(serial), end_ns=read.last_look_ns))

        whole_ms = cost_ms(whole)
    path.unlink()
    stacks = {sample.stack for sample in evidence.samples if sample.stack is not None}
    frames = max(len(stack.frames) for stack in stacks)
    note = f"{len(evidence.samples)} samples, {len(stacks)} stacks of up to {frames} frames"
    table.at_most(f"a verdict, {what}", verdict_ms, BUDGET_MS, unit="ms", note=note)
    table.told(f"from flight file to store, {what}", f"{whole_ms:.3g} ms")


def measure() -> None:
    """Prints the CPU time for each kind of evidence."""
    descriptor = os.open(os.devnull, os.O_WRONLY)
    for what, kind in KINDS.items():
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            measure_kind(what, kind, Path(folder), descriptor)
    os.close(descriptor)


if __name__ == "__main__":
    table.run(measure, program)
