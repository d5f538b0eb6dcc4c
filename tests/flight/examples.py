"""Stalls as they come, and strategies that make any stall a slot can hold."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from loopcanary.model import (
    CallbackNames,
    Contributor,
    Frame,
    GilState,
    HostReading,
    KernelView,
    LockProof,
    LockView,
    Sample,
    Scheduler,
    Stack,
    StallEvidence,
    StallScope,
    Target,
    TargetKind,
    ThreadReading,
    ThreadStack,
    ThreadWait,
)

MS = 1_000_000
BEGIN = 5_000 * MS

LEAF = Frame(
    qualname="loads", file="/usr/lib/python3.12/json/__init__.py", line=346, end_line=346, first_line=299
)
HANDLER = Frame(
    qualname="Shop.handle.<locals>.parse",
    file="/srv/shop/größe.py",
    line=20,
    end_line=21,
    column=9,
    end_column=31,
    first_line=18,
    code_flags=0x83,
)
STACK = Stack(frames=(LEAF, HANDLER))
HOLDER = Stack(frames=(HANDLER,), truncated=True)

KERNEL = KernelView(
    on_cpu_ns=900 * MS,
    run_queue_ns=3 * MS,
    voluntary_switches=12,
    involuntary_switches=4,
    major_faults=1,
    thread_state="S",
    syscall=202,
    syscall_args=(0x7F0000001000, 128, (1 << 64) - 1),
)


def sample(at_ms: int, **fields: object) -> Sample:
    return Sample(**{"at_ns": BEGIN + at_ms * MS, "stack": STACK, "kernel": KERNEL, **fields})


def stall(**fields: object) -> StallEvidence:
    """A callback that took 250 ms, fully evidenced."""
    whole = {
        "serial": 3,
        "scope": StallScope.CALLBACK,
        "tid": 41,
        "loop_kind": "asyncio",
        "thread_name": "MainThread",
        "begin_ns": BEGIN,
        "end_ns": BEGIN + 250 * MS,
        "last_look_ns": BEGIN + 250 * MS,
        "threshold_ns": 100 * MS,
        "names": CallbackNames(name="Shop.handle", task="Task-17"),
        "scene": "checkout",
        "samples": (
            sample(20, gil=GilState.SELF, in_gc=True),
            sample(30, gil=GilState.OTHER, waits_for_gil=True, holder_tid=43, holder_stack=HOLDER),
            sample(40, stack=None, kernel=None),
        ),
        "sample_interval_ns": 10 * MS,
        "samples_dropped": (("moved", 2), ("full", 1)),
        "threads": (
            ThreadStack(tid=43, at_ns=BEGIN + 99, stack=HOLDER, thread_state="R", holds_gil=True),
            ThreadStack(tid=44, at_ns=BEGIN + 99, thread_state="S", waits_for_gil=True),
        ),
        "thread_names": ((45, "resizer"), (46, "größe")),
        "turn_begin_ns": BEGIN - MS,
        "turn_callbacks": 2,
        "turn_callback_ns": 251 * MS,
        "longest_callback_ns": 250 * MS,
        "end_cpu_ns": 77 * MS,
        "queue_ns": 5 * MS,
        "before": reading(BEGIN - 3 * MS),
        "host": (
            HostReading(at_ns=BEGIN + 20 * MS, process_cpu_ns=5, throttled_ns=7, throttled_periods=1),
            HostReading(at_ns=BEGIN + 251 * MS, memory_used_bytes=0),
        ),
    }
    return StallEvidence(**{**whole, **fields})


def reading(at_ns: int) -> ThreadReading:
    return ThreadReading(at_ns=at_ns, kernel=KernelView(on_cpu_ns=890 * MS, run_queue_ns=2 * MS))


def going_on(**fields: object) -> StallEvidence:
    """The same callback, last seen after 150 ms."""
    end = {"end_ns": None, "end_cpu_ns": None, "last_look_ns": BEGIN + 150 * MS}
    return stall(**{**end, **fields})


def turn(**fields: object) -> StallEvidence:
    """A turn of many short callbacks that took 250 ms."""
    whole = {
        "scope": StallScope.TURN,
        "names": None,
        "scene": None,
        "turn_begin_ns": BEGIN,
        "contributors": (
            Contributor(
                name="parse",
                count=900,
                total_ns=180 * MS,
                longest_ns=MS,
                scheduled=(Scheduler(file="/srv/app/feed.py", line=12, count=900),),
            ),
            Contributor(name="größe", count=90, total_ns=18 * MS, longest_ns=2 * MS),
        ),
        "contributors_from_ns": BEGIN + 21 * MS,
        "contributors_dropped": 3,
    }
    return stall(**{**whole, **fields})


# ---- strategies ----------------------------------------------------------------------------

LARGEST = (1 << 63) - 1
word = st.integers(0, LARGEST)
half = st.integers(0, (1 << 32) - 1)
quarter = st.integers(0, (1 << 16) - 1)
text = st.text(max_size=40).filter(lambda text: text != "")
letter = st.sampled_from(["", "R", "S", "D", "T", "t", "Z"])


def padded_text(room: int) -> st.SearchStrategy[str]:
    """What a NUL-padded field can hold."""
    return st.text(max_size=room // 4).filter(lambda text: "\0" not in text)


frames = st.builds(
    Frame,
    qualname=text,
    file=text,
    line=half,
    end_line=half,
    column=quarter,
    end_column=quarter,
    first_line=half,
    code_flags=half,
)
stacks = st.builds(Stack, frames=st.lists(frames, max_size=8).map(tuple), truncated=st.booleans())
kernels = st.builds(
    KernelView,
    on_cpu_ns=word,
    run_queue_ns=word,
    voluntary_switches=word,
    involuntary_switches=word,
    major_faults=word,
    thread_state=letter,
    syscall=st.none() | st.integers(0, 500),
    syscall_args=st.tuples(*[st.integers(0, (1 << 64) - 1)] * 3),
)
targets = st.builds(
    Target,
    kind=st.sampled_from(TargetKind),
    name=st.just("") | text,
    pid=st.none() | st.integers(1, (1 << 32) - 1),
)
locks = st.builds(
    LockView,
    kind=st.sampled_from(["lock", "RLock", "thread", "import lock"]),
    proof=st.sampled_from(LockProof),
)
module_locks = st.builds(
    LockView, kind=st.just("import lock of numpy.linalg"), proof=st.sampled_from(LockProof)
)
waits = st.one_of(
    st.just({}),
    st.builds(lambda target: {"target": target}, targets),
    st.builds(lambda lock: {"lock": lock}, locks | module_locks),
)
working_samples = st.builds(
    Sample,
    at_ns=st.integers(BEGIN, BEGIN + 250 * MS),
    stack=st.none() | stacks,
    kernel=st.none() | kernels,
    gil=st.sampled_from(GilState),
    waits_for_gil=st.booleans(),
    in_gc=st.booleans(),
    in_circle=st.booleans(),
    holder_tid=st.none() | st.integers(1, (1 << 32) - 1),
    holder_stack=st.none() | stacks,
    gc_total_ns=word,
)
samples = st.builds(lambda sample, wait: replace(sample, **wait), working_samples, waits)
circles = st.lists(
    st.builds(
        ThreadWait,
        tid=st.integers(1, (1 << 32) - 1),
        lock=locks | module_locks,
        holder_tid=st.integers(1, (1 << 32) - 1),
        stack=st.none() | stacks,
        has_timeout=st.booleans(),
    ),
    max_size=4,
).map(tuple)
threads = st.builds(
    ThreadStack,
    tid=st.integers(100, (1 << 63) - 1),
    at_ns=word,
    stack=st.none() | stacks,
    thread_state=letter,
    holds_gil=st.booleans(),
    waits_for_gil=st.booleans(),
)

readings = st.builds(
    ThreadReading,
    at_ns=st.integers(1, BEGIN),
    kernel=st.builds(KernelView, on_cpu_ns=word, run_queue_ns=word),
)


@st.composite
def _contributors(draw: st.DrawFn) -> Contributor:
    count = draw(st.integers(1, 1 << 40))
    site = draw(st.none() | st.builds(Scheduler, file=text, line=word, count=st.just(count)))
    return Contributor(
        name=draw(text),
        count=count,
        total_ns=draw(word),
        longest_ns=draw(word),
        scheduled=() if site is None else (site,),
    )


contributors = _contributors()


@st.composite
def hosts(draw: st.DrawFn) -> HostReading:
    """Any reading of the host: what is told together is told together."""
    told: dict[str, int] = {}
    for names in (
        ("process_cpu_ns",),
        ("process_major_faults",),
        ("system_busy_ns", "system_total_ns", "system_stolen_ns"),
        ("throttled_ns", "throttled_periods"),
        ("pressure_cpu_ns",),
        ("pressure_io_ns",),
        ("pressure_memory_ns",),
        ("memory_available_bytes",),
        ("memory_used_bytes",),
    ):
        if draw(st.booleans()):
            told |= {name: draw(word) for name in names}
    if draw(st.booleans()):
        told |= {
            "nice": draw(st.integers(-20, 19)),
            "policy": draw(st.integers(0, 7)),
            "cores": draw(st.integers(0, 1024)),
        }
    return HostReading(at_ns=draw(st.integers(BEGIN, BEGIN + 300 * MS)), **told)


@st.composite
def stalls(draw: st.DrawFn) -> StallEvidence:
    """Any stall that a slot holds, over or not."""
    taken = draw(st.lists(samples, max_size=10, unique_by=lambda sample: sample.at_ns))
    reasons = ("moved", "unreadable", "full")
    counts = draw(st.tuples(*[st.integers(0, 9)] * len(reasons)))
    end_ns = draw(st.none() | st.just(BEGIN + 250 * MS))
    scope = draw(st.sampled_from((StallScope.CALLBACK, StallScope.TURN)))
    tally = draw(st.lists(contributors, max_size=6, unique_by=lambda one: one.name))
    is_turn = scope is StallScope.TURN
    return stall(
        serial=draw(word),
        scope=scope,
        before=draw(st.none() | readings),
        host=tuple(
            sorted(
                draw(st.lists(hosts(), max_size=5, unique_by=lambda one: one.at_ns)),
                key=lambda one: one.at_ns,
            )
        ),
        contributors=tuple(sorted(tally, key=lambda one: (-one.total_ns, one.name))) if is_turn else (),
        contributors_from_ns=draw(st.none() | st.integers(1, LARGEST)) if is_turn else None,
        contributors_dropped=draw(word) if is_turn else 0,
        waiters=(waiters := tuple(draw(st.lists(word, max_size=8)))),
        waiter_count=len(waiters) if len(waiters) < 8 else draw(st.integers(8, LARGEST)),
        circle=draw(circles),
        tid=draw(st.integers(1, 99)),
        loop_kind=draw(padded_text(32)),
        thread_name=draw(padded_text(64)),
        end_ns=end_ns,
        last_look_ns=draw(st.integers(BEGIN + 250 * MS, BEGIN + 300 * MS)),
        names=draw(st.none() | st.builds(CallbackNames, name=text, task=st.none() | text)),
        scene=draw(st.none() | text),
        samples=tuple(sorted(taken, key=lambda sample: sample.at_ns)),
        sample_interval_ns=draw(word),
        samples_dropped=tuple((r, n) for r, n in zip(reasons, counts, strict=True) if n),
        threads=tuple(draw(st.lists(threads, max_size=4, unique_by=lambda one: one.tid))),
        turn_begin_ns=draw(st.none() | st.just(BEGIN)),
        turn_callbacks=draw(word),
        turn_callback_ns=draw(word),
        longest_callback_ns=draw(word),
        end_cpu_ns=draw(st.none() | st.integers(1, (1 << 63) - 1)) if end_ns else None,
        queue_ns=draw(word),
        allowance_ns=draw(word),
    )
