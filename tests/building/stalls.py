"""Stalls and sessions as they are stored and shown.

A test names what matters to it, and nothing else: `stall(scene="checkout")`. Issues of other kinds are in
issues.py, stalls that are not judged yet in evidence.py, any value that there can be in anything.py, and the
files that programs leave in flight_file.py.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from loopcanary.model import (
    Activity,
    Blocker,
    Cause,
    Contributor,
    Culprit,
    Doing,
    EarlierWork,
    GilState,
    Holder,
    Ledger,
    LockProof,
    LoopHealth,
    Pause,
    Portion,
    Scheduler,
    Session,
    SessionEnd,
    Severity,
    ShortWork,
    Span,
    StackFrame,
    Stall,
    StallScope,
    StallState,
    Target,
    TargetKind,
    ThreadView,
    Timeline,
    WeightedStack,
    WorkKind,
)

MS = 1_000_000
S = 1_000_000_000
BEGAN = 1_700_000_000 * S

HOSTILE = [
    "\x1b]8;;http://evil\x1b\\click\x1b]8;;\x1b\\ \x1b[2J\x1b[31m",
    "line\nbreak\r\ttab\x00nul\x7fdel\x9b31m",
    "invoice\u202egpj.exe \u2066isolated\u2069 \u200fmark",
    "\u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627",
    "</script><script>alert(1)</script><!-- ]]> &amp;",
    "| `code` **bold** [link](http://evil) @everyone #1 ```\n```",
    "\udcff lone surrogate \ud800",
    "n" * 10_000,
    "",
]

SOURCE = "rows = [parse(row) for row in json.loads(body)]"
CULPRIT = Culprit(
    function="load_orders",
    qualname="Orders.load_orders",
    file="/srv/shop/orders.py",
    line=87,
    source=SOURCE,
    in_app=True,
    column=SOURCE.index("json") + 1,
    end_column=SOURCE.index("]"),
)


def frame(function: str, file: str, line: int, *, in_app: bool = False) -> StackFrame:
    return StackFrame(function=function, qualname=function, file=file, line=line, in_app=in_app)


FRAMES = (
    frame("raw_decode", "/usr/lib/python3.12/json/decoder.py", 355),
    frame("decode", "/usr/lib/python3.12/json/decoder.py", 337),
    frame("loads", "/usr/lib/python3.12/json/__init__.py", 346),
    frame("load_orders", "/srv/shop/orders.py", 87, in_app=True),
    frame("handle", "/srv/shop/web.py", 12, in_app=True),
    frame("_run", "/usr/lib/python3.12/asyncio/events.py", 88),
    frame("run_app", "/srv/venv/lib/python3.12/site-packages/aiohttp/web.py", 544),
    frame("main", "/srv/shop/web.py", 40, in_app=True),
)
GETS = WeightedStack(
    weight_ns=10,
    frames=(
        frame("Condition.wait", "/usr/lib/python3.13/threading.py", 359),
        frame("Queue.get", "/usr/lib/python3.13/queue.py", 202),
        frame("main", "/srv/shop/worker.py", 3, in_app=True),
    ),
)
"""Waits for an item in a queue."""
STALL = Stall(
    id="s1-1",
    session="s1",
    pid=41,
    fingerprint="1:f00d",
    title="json.loads(body) in load_orders (orders.py:87)",
    thread="MainThread",
    loop="asyncio",
    scope=StallScope.CALLBACK,
    state=StallState.ENDED,
    severity=Severity.STALL,
    began_wall_ns=BEGAN,
    duration_ns=412_345_678,
    threshold_ns=100 * MS,
    callback="handle",
    task="Task-17",
    scene=None,
    cause=Cause.NATIVE_CPU,
    confidence=0.9,
    evidence=("on a CPU for 92 % of it", "the innermost frame stayed on one call"),
    advice="Run it in a thread: `await asyncio.to_thread(json.loads, body)`.",
    culprit=CULPRIT,
    blocker=Blocker(call="json.loads(body)", function="JSONDecoder.raw_decode"),
    holder=None,
    ledger=Ledger(
        on_cpu_ns=380 * MS, gil_wait_ns=12 * MS, run_queue_ns=10 * MS, blocked_ns=10 * MS, gc_ns=20 * MS
    ),
    samples=9,
    coverage=0.8,
    dropped_samples=1,
    stacks=(
        WeightedStack(weight_ns=390 * MS, frames=FRAMES),
        WeightedStack(weight_ns=22 * MS, frames=FRAMES[3:], truncated=True),
    ),
    timeline=Timeline(
        spans=(
            Span(
                offset_ns=0,
                length_ns=300 * MS,
                samples=6,
                stack=0,
                activity=Activity(doing=Doing.ON_CPU, state="R", gil=GilState.SELF),
            ),
            Span(
                offset_ns=300 * MS,
                length_ns=22 * MS,
                samples=1,
                stack=1,
                activity=Activity(
                    doing=Doing.GIL_WAIT,
                    state="S",
                    gil=GilState.OTHER,
                    holder="pool-1",
                    holder_frames=FRAMES[2:4],
                ),
            ),
            Span(
                offset_ns=322 * MS,
                length_ns=90_345_678,
                samples=2,
                stack=0,
                activity=Activity(doing=Doing.GC, state="R", gil=GilState.SELF),
            ),
        ),
        seen_from_ns=20 * MS,
        seen_until_ns=410 * MS,
        pauses=(
            Pause(offset_ns=-2 * S, length_ns=MS, generation=0, collected=7, thread="pool-1", own=False),
            Pause(
                offset_ns=330 * MS,
                length_ns=20 * MS,
                generation=2,
                collected=9,
                thread="MainThread",
                own=True,
            ),
        ),
        turn_ago_ns=3 * MS,
        turn_callbacks=2,
        earlier=(
            EarlierWork(
                kind=WorkKind.TURN,
                ago_ns=900 * MS,
                length_ns=40 * MS,
                callbacks=3,
                longest_ns=39 * MS,
                short=ShortWork(turns=120, callbacks=240, busy_ns=11 * MS, idle_ns=600 * MS),
            ),
            EarlierWork(
                kind=WorkKind.CALLBACK,
                name="Shop.refresh",
                task="refresher",
                ago_ns=500 * MS,
                length_ns=25 * MS,
                callbacks=1,
                longest_ns=25 * MS,
            ),
        ),
        earlier_last=ShortWork(turns=7, callbacks=9, busy_ns=2 * MS, idle_ns=470 * MS),
        earlier_from_ns=30_000 * MS,
    ),
)
KILLED = dataclasses.replace(
    STALL,
    id="s1-2",
    fingerprint="1:dead",
    title="lock.acquire() in flush (cache.py:12)",
    severity=Severity.ANR,
    state=StallState.KILLED,
    cause=Cause.LOCK,
    confidence=0.5,
    began_wall_ns=BEGAN + 60 * S,
    duration_ns=7_310 * MS,
    task=None,
    thread="worker-2",
    scene="checkout",
    advice=None,
    holder=Holder(thread="pool-1", culprit=dataclasses.replace(CULPRIT, source=None)),
    ledger=Ledger(blocked_ns=7_300 * MS),
    threads=(
        ThreadView(tid=5, name="pool-1", state="S", holds_gil=True, waits_for_gil=False, frames=FRAMES[:4]),
    ),
)
RUNNING = Session(
    id="s1",
    name="shop",
    pid=41,
    parent_pid=1,
    host="here",
    python="CPython 3.12.1",
    engine="native",
    started_wall_ns=BEGAN - 10 * S,
)
SESSION = dataclasses.replace(
    RUNNING,
    ended_wall_ns=BEGAN + 67_310 * MS,
    end=SessionEnd.KILLED,
    threshold_ns=100 * MS,
    loops=(
        LoopHealth(
            thread="MainThread",
            kind="asyncio",
            turns=10,
            callbacks=20,
            busy_ns=8 * S,
            window_ns=77 * S,
            utilization=0.104,
            delay_p50_ns=0,
            delay_p99_ns=6_700 * MS,
            delay_max_ns=7_310 * MS,
            delay_mean_ns=340 * MS,
        ),
    ),
)


def stall(**changes: Any) -> Stall:
    """STALL, but for these fields."""
    return dataclasses.replace(STALL, **changes)


def session(**changes: Any) -> Session:
    """A run that was killed."""
    return dataclasses.replace(SESSION, **changes)


def running(**changes: Any) -> Session:
    """A run of which nothing is known but how it began."""
    return dataclasses.replace(RUNNING, **changes)


def hostile_stall(text: str, number: int = 0) -> Stall:
    """A stall all of whose texts are the same hostile one."""
    culprit = dataclasses.replace(
        CULPRIT,
        function=text,
        qualname=text,
        file=f"/{text}",
        source=text,
        column=1,
        end_column=len(text) + 1,
    )
    named = frame(text, f"/{text}", 1, in_app=True)
    return stall(
        id=f"h-{number}",
        fingerprint=f"h{number}",
        title=text,
        thread=text,
        loop=text,
        callback=text,
        task=text,
        scene=text,
        evidence=(text,),
        advice=text,
        culprit=culprit,
        blocker=Blocker(call=text, function=text),
        holder=Holder(thread=text, culprit=culprit),
        holders=(Holder(thread=text, culprit=culprit, share=0.5, lock=text, proof=LockProof.WITH),) * 2,
        portions=(
            Portion(share=0.5, cause=Cause.CPU, culprit=culprit, blocker=Blocker(call=text, function=text)),
        ),
        waited_on=Target(kind=TargetKind.FILE, name=text, pid=1),
        contributors=(
            Contributor(
                name=text,
                count=1,
                total_ns=1,
                longest_ns=1,
                scheduled=(Scheduler(file=f"/{text}", line=1, count=1),),
            ),
        ),
        stacks=(WeightedStack(weight_ns=1, frames=(named, dataclasses.replace(named, in_app=False))),),
        threads=(
            ThreadView(tid=1, name=text, state=text, holds_gil=True, waits_for_gil=True, frames=(named,)),
        ),
        timeline=Timeline(
            spans=(
                Span(
                    offset_ns=0,
                    length_ns=412_345_678,
                    samples=1,
                    stack=0,
                    activity=Activity(
                        doing=Doing.BLOCKED,
                        state=text,
                        syscall=text,
                        waited_on=Target(kind=TargetKind.FILE, name=text, pid=1),
                        lock=text,
                        holder=text,
                        holder_frames=(named,),
                    ),
                ),
            ),
            seen_from_ns=0,
            seen_until_ns=412_345_678,
            pauses=(Pause(offset_ns=0, length_ns=1, generation=2, collected=0, thread=text, own=True),),
        ),
    )
