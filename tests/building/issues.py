"""One issue of each kind beside stalls (stalls.py)."""

from __future__ import annotations

import dataclasses
from typing import Any

from tests.building.stalls import BEGAN, MS, SESSION, STALL, S, frame

from loopcanary.model import (
    CallRow,
    Cause,
    CodeOrigin,
    FindingRule,
    FoundAt,
    FrameFigures,
    FrameSlice,
    Handled,
    IdleFigures,
    IdleLag,
    ImportedFinding,
    InputFigures,
    InputLag,
    Jank,
    LateFrame,
    Milestone,
    Phase,
    PhaseKind,
    SceneFrames,
    SlowMethod,
    StartKind,
    Startup,
    TraceFigures,
)
from loopcanary.model.issues.hangs import BootHang, ExitHang
from loopcanary.model.issues.locks import Deadlock, LockLeak, TaskWait
from loopcanary.model.issues.windows import UPDATES_DISABLED, BlockedWindow

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
BOOT_HANG = BootHang(
    id="s1-boot-hang-9",
    fingerprint="boot-hang:0123456789ab",
    title="an import has not ended: it waits for socket to 10.0.0.5:80, in Orders.load (orders.py:87)",
    duration_ns=12_000 * MS,
    waits_for="socket to 10.0.0.5:80",
    **{**_WAITS, "began_wall_ns": BEGAN + 48 * S},
)
EXIT_HANG = ExitHang(
    id="s1-exit-hang-9",
    fingerprint="exit-hang:0123456789ab",
    title="the program does not end: threading._shutdown waits, in Orders.load (orders.py:87)",
    duration_ns=6_000 * MS,
    where="threading._shutdown",
    **{**_WAITS, "began_wall_ns": BEGAN + 50 * S},
)
MORE_ISSUES = (DEADLOCK, LOCK_LEAK, BLOCKED_WINDOW, BOOT_HANG, EXIT_HANG)
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
