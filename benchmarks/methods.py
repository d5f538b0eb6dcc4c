"""What tracing calls adds to a call: loopcanary's `methods` beside VizTracer and cProfile, in one run.

Each way is a process of its own, started in turns. A process calls a small function in a loop, with the
tracer off and on in alternation, and says the nanoseconds that a call and return took more with it: the least
of 25 loops each.

VizTracer is installed for this alone: `pip install viztracer`. Without it its rows are left out.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from harness import table
from harness.children import PROGRAM_CPU

ROUNDS = table.sized(7, 1)
BUDGETS = (
    {"viztracer": 0.6, "cProfile": None}
    if sys.version_info < (3, 12)
    else {"viztracer": 0.45, "cProfile": 0.4}
    if sys.version_info < (3, 15)
    else {"viztracer": 0.4, "cProfile": 0.35}
)
"""At most so much of theirs; None: no budget."""
CHILD = """
import json, sys, time

def f(a, b):
    return a + b

def calls(count):
    begin = time.perf_counter_ns()
    for _ in range(count):
        f(1, 2)
    return (time.perf_counter_ns() - begin) / count

def raises(count):
    def fail():
        raise ValueError
    begin = time.perf_counter_ns()
    for _ in range(count):
        try:
            fail()
        except ValueError:
            pass
    return (time.perf_counter_ns() - begin) / count

def least(work):
    return min(work(20_000) for _ in range(5))

def measured(start, stop, work):
    # Other work on the machine only adds: the least counts.
    before, on, after = least(work), [], []
    for _ in range(5):
        start()
        work(10)
        on.append(least(work))
        stop()
        after.append(least(work))
    return min(on) - min(before, *after), before, min(after)

way = sys.argv[1]
if way.startswith("loopcanary"):
    import loopcanary
    names = ["."] if way == "loopcanary" else ["nothing_of_this_program"]
    def start():
        loopcanary.install(methods=names, console="off")
    stop = loopcanary.uninstall
elif way == "viztracer":
    from viztracer import VizTracer
    tracer = VizTracer(verbose=0)
    start = tracer.start
    def stop():
        tracer.stop()
        tracer.clear()
else:
    import cProfile
    profiler = cProfile.Profile()
    start, stop = profiler.enable, profiler.disable
work = raises if way == "loopcanary, exceptions elsewhere" else calls
print(json.dumps(measured(start, stop, work)))
"""


def added_ns(way: str, folder: str) -> tuple[float, float, float]:
    """Nanoseconds a call more; nanoseconds a call without it, before it was ever on, and after."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("LOOPCANARY")}
    command = (sys.executable, "child.py", way)
    done = subprocess.run(command, cwd=folder, env=clean, check=True, stdout=subprocess.PIPE)
    more, before, after = json.loads(done.stdout.splitlines()[-1])
    return more, before, after


def measure() -> None:
    """Prints nanoseconds, and ratios of neighbours."""
    os.sched_setaffinity(0, {PROGRAM_CPU})
    peers = [name for name in BUDGETS if name == "cProfile" or find_spec(name)]
    ways = ["loopcanary", *peers, "loopcanary, other packages", "loopcanary, exceptions elsewhere"]
    with tempfile.TemporaryDirectory(prefix="loopcanary-benchmark-", ignore_cleanup_errors=True) as folder:
        Path(folder, "child.py").write_text(CHILD, encoding="utf-8")
        runs = [{way: added_ns(way, folder) for way in ways} for _ in range(ROUNDS)]
    added = {way: [run[way][0] for run in runs] for way in ways}
    for way in ways:
        print(f"{way:34} {statistics.median(added[way]):7.1f} ns a call more")
    for peer in peers:
        ratio = statistics.median(
            ours / theirs for ours, theirs in zip(added["loopcanary"], added[peer], strict=True)
        )
        budget = BUDGETS[peer]
        if budget is None:
            table.told(f"added, of {peer}'s", f"{ratio:.3g}", note="the same run")
        else:
            table.at_most(f"added, of {peer}'s", ratio, budget, note="the same run")
    off = statistics.median(run["loopcanary"][2] / run["loopcanary"][1] for run in runs)
    table.at_most("a call after it was switched off, of before", off, 1.05)


if __name__ == "__main__":
    measure()
