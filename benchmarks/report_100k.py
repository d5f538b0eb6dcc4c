"""How long reports take over a full store: 100,000 stalls of 500 bugs in 20 sessions."""

from __future__ import annotations

import dataclasses
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from harness import table

from loopcanary.model import (
    Cause,
    Culprit,
    Ledger,
    LoopHealth,
    Session,
    SessionEnd,
    Severity,
    StackFrame,
    Stall,
    StallScope,
    StallState,
    WeightedStack,
)
from loopcanary.store import Store

STALLS = table.sized(100_000, 2_000)
BUGS = 500
SESSIONS = 20
BATCH = 1_000
RUNS = table.sized(5, 1)
MS = 1_000_000
DAY_NS = 86_400 * 1_000 * MS


def frames(bug: int) -> tuple[StackFrame, ...]:
    """A stack of usual depth that ends in this bug's function."""
    own = [("load", f"/srv/shop/part{bug % 40}.py", bug), ("handle", "/srv/shop/web.py", 12)]
    library = [(f"step{number}", "/srv/venv/site-packages/framework/app.py", number) for number in range(12)]
    return tuple(
        StackFrame(function=name, qualname=name, file=file, line=line, in_app="venv" not in file)
        for name, file, line in own + library
    )


def template(bug: int) -> Stall:
    """The bug's stall, but for its id, session and times."""
    file, line = f"/srv/shop/part{bug % 40}.py", bug
    culprit = Culprit(
        function="load",
        qualname=f"Orders.load_{bug}",
        file=file,
        line=line,
        source="rows = [parse(row) for row in json.loads(body)]",
        in_app=True,
        column=31,
        end_column=47,
    )
    return Stall(
        id="",
        session="",
        pid=41,
        fingerprint=f"1:{bug:016x}",
        title=f"json.loads(body) in load_{bug} ({file.rpartition('/')[2]}:{line})",
        thread="MainThread",
        loop="asyncio",
        scope=StallScope.CALLBACK,
        state=StallState.ENDED,
        severity=Severity.STALL,
        began_wall_ns=0,
        duration_ns=0,
        threshold_ns=100 * MS,
        callback=f"handle_{bug}",
        task="Task-17",
        scene="checkout" if bug % 3 else None,
        cause=list(Cause)[bug % len(Cause)],
        confidence=0.9,
        evidence=("on a CPU for 92 % of it", "the innermost frame stayed on one call"),
        advice="Run it in a thread: `await asyncio.to_thread(json.loads, body)`.",
        culprit=culprit,
        blocker=None,
        holder=None,
        ledger=Ledger(on_cpu_ns=100 * MS, gil_wait_ns=0, run_queue_ns=MS, blocked_ns=0, gc_ns=0),
        samples=9,
        coverage=0.8,
        dropped_samples=0,
        stacks=(WeightedStack(weight_ns=90 * MS, frames=frames(bug)),),
    )


def stalls(now_ns: int) -> Iterator[Stall]:
    """All of them, oldest first, over the last days; few bugs have most of the stalls."""
    chance = random.Random(1)
    templates = [template(bug) for bug in range(BUGS)]
    for number in range(STALLS):
        session = number * SESSIONS // STALLS
        yield dataclasses.replace(
            templates[int(BUGS * chance.random() ** 3)],
            id=f"s{session}-{number}",
            session=f"s{session}",
            began_wall_ns=now_ns - DAY_NS + number * (DAY_NS // STALLS),
            duration_ns=int(chance.lognormvariate(0, 0.7) * 150 * MS) + 100 * MS,
        )


def loop() -> LoopHealth:
    """A loop with as many buckets in its histogram as a service fills in an hour."""
    window_ns = DAY_NS // SESSIONS
    buckets = tuple((round(10_000 * 1.1**step), 1 + 1_000_000 >> step // 12) for step in range(150))
    return LoopHealth(
        thread="MainThread",
        kind="asyncio",
        turns=sum(count for _, count in buckets),
        callbacks=4_000_000,
        busy_ns=window_ns // 4,
        window_ns=window_ns,
        utilization=0.25,
        delay_p50_ns=0,
        delay_p99_ns=300 * MS,
        delay_max_ns=buckets[-1][0],
        delay_mean_ns=30 * MS,
        queue_mean_ns=MS,
        queue_max_ns=500 * MS,
        histogram=buckets,
    )


def fill(folder: Path) -> None:
    """Writes the store as watched processes do, but in larger transactions."""
    now_ns = time.time_ns()
    sessions = [
        Session(
            id=f"s{number}",
            name="shop",
            pid=41,
            parent_pid=1,
            host="here",
            python="CPython 3.12.1",
            engine="native",
            started_wall_ns=now_ns - DAY_NS + number * (DAY_NS // SESSIONS),
            ended_wall_ns=now_ns - DAY_NS + (number + 1) * (DAY_NS // SESSIONS),
            end=SessionEnd.EXIT,
            threshold_ns=100 * MS,
            version=str(number),
            loops=(loop(),),
        )
        for number in range(SESSIONS)
    ]
    store = Store(folder)
    store.put(sessions, [])
    batch: list[Stall] = []
    for stall in stalls(now_ns):
        batch.append(stall)
        if len(batch) == BATCH:
            store.put([], batch)
            batch.clear()
    store.close()


def seconds(command: str, *options: str) -> float:
    """The median CPU time of the command, which waits for nothing, from its start to its end."""
    times = []
    for _ in range(RUNS):
        begin = children_cpu_s()
        subprocess.run(
            [sys.executable, "-m", "loopcanary", command, *options],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        times.append(children_cpu_s() - begin)
    return statistics.median(times)


def children_cpu_s() -> float:
    """CPU time of the children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure() -> None:
    """Prints the time of each form of the report."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        begin = time.process_time()
        fill(Path(folder))
        took = time.process_time() - begin
        table.told(f"{STALLS:,} stalls put into a store", f"{took:.3g} s")
        store = ("--store", folder)
        table.at_most("loopcanary report", seconds("report", *store), 1, unit="s")
        table.told(
            "loopcanary report --format json", f"{seconds('report', *store, '--format', 'json'):.3g} s"
        )
        narrow = seconds("report", *store, "--text", "load_7", "--since", "2h")
        table.told("loopcanary report --text --since", f"{narrow:.3g} s")
        table.told("loopcanary show", f"{seconds('show', f'1:{0:016x}', *store):.3g} s")
        table.told("loopcanary diff --after", f"{seconds('diff', folder, '--after', '12h'):.3g} s")


if __name__ == "__main__":
    table.run(measure)
