"""Stalls and sessions for the tests of everything that stores or shows them."""

from __future__ import annotations

import dataclasses
from typing import Any

from hypothesis import strategies as st

from loopcanary.model import (
    Activity,
    Blocker,
    CallRow,
    Cause,
    CodeOrigin,
    Contributor,
    Culprit,
    Doing,
    EarlierWork,
    FindingRule,
    FoundAt,
    FrameFigures,
    FrameSlice,
    GilState,
    Grade,
    Handled,
    Holder,
    IdleFigures,
    IdleLag,
    ImportedFinding,
    InputFigures,
    InputLag,
    Jank,
    KilledBy,
    LateFrame,
    Ledger,
    LockProof,
    LoopHealth,
    Milestone,
    Pause,
    Phase,
    PhaseKind,
    Portion,
    PriorityChange,
    SceneFrames,
    Scheduler,
    Session,
    SessionEnd,
    Severity,
    ShortWork,
    SlowMethod,
    Span,
    StackFrame,
    Stall,
    StallScope,
    StallState,
    StartKind,
    Startup,
    StateWord,
    Surroundings,
    Target,
    TargetKind,
    ThreadView,
    Timeline,
    TracedCall,
    TracedCalls,
    TracedWork,
    TraceFigures,
    WeightedStack,
    WorkKind,
)
from loopcanary.model.issues.lock_orders import LockOrder, TakenOrder
from loopcanary.model.issues.locks import Deadlock, LockLeak, TaskWait
from loopcanary.model.issues.windows import UPDATES_DISABLED, BlockedWindow

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
SESSION = Session(
    id="s1",
    name="shop",
    pid=41,
    parent_pid=1,
    host="here",
    python="CPython 3.12.1",
    engine="native",
    started_wall_ns=BEGAN - 10 * S,
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
    return dataclasses.replace(STALL, **changes)


def session(**changes: Any) -> Session:
    return dataclasses.replace(SESSION, **changes)


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


FIGURES = FrameFigures(
    refresh_mhz=60_000,
    frames=281,
    frame_ns=6 * S,
    drop_level=(280, 0, 1, 0, 0),
    drop_sum=(0, 0, 23, 0, 0),
    late_ns=383_333_333,
    janky_ns=383_333_333,
    worst_ns=400_000_000,
)
SCENE = SceneFrames(
    thread="MainThread",
    loop="pygame",
    scene="boss",
    figures=FIGURES,
    slices=(FrameSlice(began_wall_ns=BEGAN, ended_wall_ns=BEGAN + 6 * S, figures=FIGURES),),
)
REQUESTS = InputFigures(
    thread="MainThread",
    loop="requests",
    events=20,
    p50_ns=254_000,
    p98_ns=4_390_000,
    worst_ns=4_390_000,
    worst="GET /orders",
    queued_ns=3_000_000,
    lag_ns=12_000_000,
    one_of=16,
)
TRACES = TraceFigures(
    frames=(SCENE,),
    input=(
        InputFigures(
            thread="MainThread",
            loop="pygame",
            events=12,
            p50_ns=16_000_000,
            p98_ns=240_000_000,
            worst_ns=266_000_000,
            worst="KeyDown",
            queued_ns=40_000_000,
            lag_ns=640_000_000,
        ),
    ),
    idle=(
        IdleFigures(
            thread="MainThread", loop="tk", name="thumbs", runs=3, total_ns=9 * S, longest_ns=4 * S, spun_ns=0
        ),
    ),
)
_COMMON: dict[str, Any] = {
    "session": SESSION.id,
    "pid": SESSION.pid,
    "thread": "MainThread",
    "loop": "pygame",
    "scene": "boss",
    "began_wall_ns": BEGAN,
    "cause": Cause.SLEEP,
    "culprit": STALL.culprit,
    "advice": "sleep less",
    "stalls": (STALL.id,),
    "stacks": STALL.stacks,
}
JANK = Jank(
    id="s1-jank-1",
    fingerprint="jank:0123456789ab",
    title="47 of 60 fps in boss, worst frame 400 ms",
    duration_ns=6 * S,
    figures=FIGURES,
    worst=(LateFrame(began_wall_ns=BEGAN + S, duration_ns=400_000_000, dropped=23, stalls=(STALL.id,)),),
    **_COMMON,
)
INPUT_LAG = InputLag(
    id="s1-input-2",
    fingerprint="input:0123456789ab",
    title="KeyDown was handled after 266 ms",
    duration_ns=266_000_000,
    event="KeyDown",
    queued_ns=16_000_000,
    before=(Handled(name="frame", duration_ns=16_000_000, culprit=None, stall=None),),
    **{**_COMMON, "began_wall_ns": BEGAN + 10 * S},
)
IDLE_LAG = IdleLag(
    id="s1-idle-3",
    fingerprint="idle:0123456789ab",
    title="idle work thumbs took 4.00 s",
    duration_ns=4 * S,
    handler="thumbs",
    **{**_COMMON, "began_wall_ns": BEGAN + 20 * S, "culprit": None, "stalls": (), "stacks": ()},
)
STARTUP = Startup(
    id="s1-startup-4",
    fingerprint="startup:0123456789ab",
    title="cold start took 12.0 s",
    duration_ns=12 * S,
    start=StartKind.COLD,
    program=SESSION.name,
    threshold_ns=10 * S,
    phases=(
        Phase(kind=PhaseKind.INTERPRETER, offset_ns=0, duration_ns=S, self_ns=S),
        Phase(kind=PhaseKind.SITE, offset_ns=S, duration_ns=S, self_ns=S),
        Phase(kind=PhaseKind.READY, offset_ns=2 * S, duration_ns=9 * S, self_ns=S),
        Phase(
            kind=PhaseKind.IMPORT,
            name="shop.orders",
            depth=1,
            offset_ns=3 * S,
            duration_ns=8 * S,
            self_ns=2 * S,
            origin=CodeOrigin.COMPILED,
            bytes_read=34_000,
            major_faults=3,
        ),
        Phase(
            kind=PhaseKind.IMPORT, name="pandas", depth=2, offset_ns=4 * S, duration_ns=6 * S, self_ns=6 * S
        ),
        Phase(kind=PhaseKind.OTHER, name="warm the cache", offset_ns=11 * S, duration_ns=S, self_ns=S),
    ),
    left_out=211,
    milestones=(
        Milestone(kind=PhaseKind.READY, offset_ns=11 * S),
        Milestone(kind=PhaseKind.LISTENING, offset_ns=12 * S),
        Milestone(kind=PhaseKind.ANSWER, offset_ns=14 * S),
    ),
    run_ns=90 * MS,
    imports=213,
    compiled=40,
    bytes_read=5_400_000,
    major_faults=61,
    **{
        **_COMMON,
        "began_wall_ns": BEGAN + 30 * S,
        "cause": Cause.IMPORT,
        "culprit": None,
        "scene": None,
        "stalls": (),
        "stacks": (),
        "advice": None,
    },
)
SLOW_METHOD = SlowMethod(
    id="s1-slow-method-5",
    fingerprint="slow-method:0123456789ab",
    title="Orders.load_orders took 1.10 s of 1.20 s (orders.py:80)",
    duration_ns=1_200 * MS,
    threshold_ns=700 * MS,
    rows=(
        CallRow(
            frame=frame("_run", "/usr/lib/python3.12/asyncio/events.py", 80),
            total_ns=1_200 * MS,
            self_ns=2 * MS,
            is_dispatch=True,
        ),
        CallRow(
            frame=frame("handle", "/srv/shop/web.py", 9, in_app=True),
            depth=1,
            total_ns=1_198 * MS,
            self_ns=98 * MS,
        ),
        CallRow(
            frame=frame("Orders.load_orders", "/srv/shop/orders.py", 80, in_app=True),
            depth=2,
            count=40,
            total_ns=1_100 * MS,
            self_ns=900 * MS,
        ),
        CallRow(
            frame=frame("parse", "/srv/shop/orders.py", 12, in_app=True),
            depth=3,
            count=9_000,
            total_ns=150 * MS,
            self_ns=150 * MS,
        ),
    ),
    left_out=3,
    left_out_ns=50 * MS,
    key=2,
    **{**_COMMON, "began_wall_ns": BEGAN + 40 * S, "scene": None, "stalls": (), "stacks": ()},
)
START_IN_TIME = dataclasses.replace(
    STARTUP,
    id="s1-startup-6",
    title="warm start took 800 ms",
    start=StartKind.WARM,
    fingerprint="startup:ba9876543210",
    threshold_ns=4 * S,
    duration_ns=800 * MS,
    began_wall_ns=BEGAN + 50 * S,
    phases=(Phase(kind=PhaseKind.INTERPRETER, offset_ns=0, duration_ns=800 * MS, self_ns=800 * MS),),
    left_out=0,
)
"""Within its limit: it is kept for the course of starts, not reported."""
_WAITS = {
    **_COMMON,
    "cause": Cause.LOCK,
    "scene": None,
    "stalls": (),
    "stacks": (),
    "advice": "Take locks in the same order everywhere, or hold one at a time",
}
DEADLOCK = Deadlock(
    id="s1-deadlock-7",
    fingerprint="deadlock:0123456789ab",
    title="2 tasks wait for each other: pay, refund",
    duration_ns=3_000 * MS,
    cycle=(
        TaskWait(
            task="pay",
            waits_for="Lock 'Bank.ledger'",
            holds="Lock 'Bank.accounts'",
            frames=(frame("Bank.pay", "/srv/shop/bank.py", 14, in_app=True),),
        ),
        TaskWait(
            task="refund",
            waits_for="Lock 'Bank.accounts'",
            holds="Lock 'Bank.ledger'",
            frames=(frame("Bank.refund", "/srv/shop/bank.py", 20, in_app=True),),
        ),
    ),
    waiting=1,
    **{**_WAITS, "began_wall_ns": BEGAN + 42 * S},
)
LOCK_LEAK = LockLeak(
    id="s1-lock-leak-8",
    fingerprint="lock-leak:0123456789ab",
    title="Lock 'Cache.lock' was not released: 1 task waits for it",
    duration_ns=8_000 * MS,
    primitive="Lock 'Cache.lock'",
    acquired_by="fill",
    acquired=(frame("Cache.fill", "/srv/shop/cache.py", 12, in_app=True),),
    waiters=(
        TaskWait(
            task="read",
            waits_for="Lock 'Cache.lock'",
            frames=(frame("Cache.read", "/srv/shop/cache.py", 17, in_app=True),),
        ),
    ),
    waiting=1,
    **{**_WAITS, "began_wall_ns": BEGAN + 44 * S},
)
LOCK_ORDER = LockOrder(
    id="s1-lock-order-10",
    fingerprint="lock-order:0123456789ab",
    title="2 locks are acquired in both orders: Lock 'Bank.accounts', Lock 'Bank.ledger'",
    duration_ns=0,
    culprit=Culprit(
        function="pay", qualname="Bank.pay", file="/srv/shop/bank.py", line=13, source=None, in_app=True
    ),
    orders=(
        TakenOrder(
            thread="teller",
            holds="Lock 'Bank.accounts'",
            takes="Lock 'Bank.ledger'",
            held_at=(frame("Bank.pay", "/srv/shop/bank.py", 12, in_app=True),),
            frames=(frame("Bank.pay", "/srv/shop/bank.py", 13, in_app=True),),
        ),
        TakenOrder(
            thread="auditor",
            holds="Lock 'Bank.ledger'",
            takes="Lock 'Bank.accounts'",
            held_at=(frame("Bank.audit", "/srv/shop/bank.py", 17, in_app=True),),
            frames=(frame("Bank.audit", "/srv/shop/bank.py", 18, in_app=True),),
        ),
    ),
    **{
        **{name: value for name, value in _WAITS.items() if name != "culprit"},
        "began_wall_ns": BEGAN + 45 * S,
        "advice": "Acquire them in the same order on all threads, or hold one at a time",
    },
)
BLOCKED_WINDOW = BlockedWindow(
    id="s1-blocked-window-9",
    fingerprint="blocked-window:0123456789ab",
    title="QTableView orders is not painted: its updates are disabled",
    duration_ns=11_000 * MS,
    blocked_by=UPDATES_DISABLED,
    subject="QTableView orders",
    times=2,
    switched_on=(frame("Orders.load", "/srv/shop/orders.py", 87, in_app=True),),
    **{**_WAITS, "cause": Cause.UNKNOWN, "began_wall_ns": BEGAN + 46 * S},
)
ISSUES = (JANK, INPUT_LAG, IDLE_LAG, STARTUP, SLOW_METHOD)
"""One of each kind but those below, oldest first."""
MORE_ISSUES = (DEADLOCK, LOCK_LEAK, LOCK_ORDER, BLOCKED_WINDOW)
"""Those of tracers in the program."""
FINDING = ImportedFinding(
    id="s1-finding-9",
    fingerprint="finding:0123456789ab",
    title="a query reads the whole table: orders in Orders.load",
    duration_ns=412 * MS,
    rule=FindingRule.TABLE_SCAN,
    at=FoundAt(
        file="/data/user/0/com.example.shop/cache/orders.tmp",
        database="/data/user/0/com.example.shop/databases/shop.db",
        table="orders",
        sql="select * from orders where customer = 'mary'",
        owner="com.example.shop.OrdersActivity",
        chain=("static com.example.shop.Shop.instance", "com.example.shop.OrdersActivity instance"),
        said=("SCAN TABLE orders",),
    ),
    operations=312,
    repeats=3,
    size_bytes=40_960,
    buffer_bytes=120,
    moved_bytes=37_440,
    **{**_COMMON, "began_wall_ns": BEGAN + 46 * S, "cause": Cause.UNKNOWN, "stalls": ()},
)
"""With all that one may have."""


# ---- any value there can be ------------------------------------------------------------------

_EXACT_NS = st.integers(0, 2**51)
_WALL_NS = st.integers(-62_135_596_800 * S, 253_402_300_800 * S - 1)
_RATIOS = st.floats(0, 1)
_TEXTS = st.one_of(st.text(max_size=20), st.sampled_from(HOSTILE[:7]))
_COUNTS = st.integers(0, 2**63)
_NAMED = {
    "int": _COUNTS,
    "str": _TEXTS,
    "bool": st.booleans(),
    "float": _RATIOS,
    "str | None": st.none() | _TEXTS,
    "int | None": st.none() | _COUNTS,
    "float | None": st.none() | _RATIOS,
    "tuple[str, ...]": st.lists(_TEXTS, max_size=3).map(tuple),
    "tuple[tuple[int, int], ...]": st.lists(st.tuples(_EXACT_NS, _COUNTS), max_size=3).map(tuple),
    "tuple[int, ...]": st.tuples(*[_COUNTS] * 5),
    "dict[str, int]": st.dictionaries(_TEXTS, _COUNTS, max_size=3),
    "StallScope": st.sampled_from(StallScope),
    "StallState": st.sampled_from(StallState),
    "Severity": st.sampled_from(Severity),
    "Cause": st.sampled_from(Cause),
    "SessionEnd": st.sampled_from(SessionEnd),
    "Grade": st.sampled_from(Grade),
    "Cause | None": st.none() | st.sampled_from(Cause),
    "StateWord | None": st.none() | st.sampled_from(StateWord),
    "LockProof | None": st.none() | st.sampled_from(LockProof),
    "TargetKind": st.sampled_from(TargetKind),
    "GilState": st.sampled_from(GilState),
    "Doing": st.sampled_from(Doing),
    "WorkKind": st.sampled_from(WorkKind),
    "CodeOrigin": st.sampled_from(CodeOrigin),
    "StartKind": st.sampled_from(StartKind),
    "PhaseKind": st.sampled_from(PhaseKind),
    "FindingRule": st.sampled_from(FindingRule),
}
_TYPES = {
    kind.__name__: kind
    for kind in (
        *(Blocker, Contributor, Culprit, Holder, KilledBy, Ledger, LoopHealth, Portion, Scheduler),
        *(PriorityChange, StackFrame, Surroundings, Target, ThreadView, WeightedStack),
        *(FrameFigures, FrameSlice, SceneFrames, InputFigures, IdleFigures, TraceFigures),
        *(FoundAt, Handled, LateFrame, CallRow, Milestone, Phase, TracedCall, TracedCalls, TracedWork),
        *(Activity, EarlierWork, Pause, ShortWork, Span, Timeline),
    )
}


def any_of(kind: type) -> st.SearchStrategy[Any]:
    """Values of a model type, with all its fields: a field that the wire form forgets cannot hide."""
    fields = dataclasses.fields(kind)
    built = st.builds(kind, **{field.name: _any_field(field.name, str(field.type)) for field in fields})
    return built.map(_with_own_stacks) if kind is Stall else built


def _with_own_stacks(stall: Stall) -> Stall:
    """Spans name stacks of their stall, none that it does not have."""
    if stall.timeline is None:
        return stall
    count = len(stall.stacks)
    spans = [
        dataclasses.replace(span, stack=span.stack % count if span.stack is not None and count else None)
        for span in stall.timeline.spans
    ]
    timeline = dataclasses.replace(stall.timeline, spans=tuple(spans))
    return dataclasses.replace(stall, timeline=timeline)


def _any_field(name: str, annotation: str) -> st.SearchStrategy[Any]:
    optional = annotation.endswith(" | None")
    base = annotation.removesuffix(" | None")
    if name.endswith("_ns"):
        times = _WALL_NS if name.endswith("_wall_ns") else _EXACT_NS
        return st.none() | times if optional else times
    if name == "refresh_mhz":
        return st.integers(1, 10**9)
    if base in _TYPES:
        return st.none() | any_of(_TYPES[base]) if optional else any_of(_TYPES[base])
    inner = base.removeprefix("tuple[").removesuffix(", ...]")
    if inner in _TYPES:
        return st.lists(any_of(_TYPES[inner]), max_size=2).map(tuple)
    return _NAMED[annotation]
