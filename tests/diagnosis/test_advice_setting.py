"""Advice by what is known of the place: who can await, the GIL, the holder, loops that poll."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import NamedTuple

import pytest
from tests.diagnosis.cases import (
    APP,
    ASYNC,
    PLAIN,
    SITE,
    STDLIB,
    Texts,
    at,
    evidence,
    frame,
    judged,
    samples,
    stack,
)

from loopcanary.model import Cause, GilState, LockProof, LockView, TargetKind
from loopcanary.model.waiting import Target

SLEEPS = {"syscall": "clock_nanosleep"}
SLEEPS_AGAIN = SLEEPS | {"ran_ns": 50_000}
WAITS = {"syscall": "futex"}
RUNS = {"running": True, "gil": GilState.SELF}
FREE = {"running": True, "gil": GilState.FREE}


def inside(source, call, file=APP):
    """A frame at a call, with the name and the flags of the function around it."""
    found = at(call, source, file=file)
    above = source.split("\n")[: found.line - 1]
    row, text = next(
        (row, line)
        for row, line in reversed(list(enumerate(above, 1)))
        if re.match(r"\s*(async )?def ", line)
        and len(line) - len(line.lstrip()) < _indent(source, found.line)
    )
    flags = ASYNC if text.lstrip().startswith("async ") else PLAIN
    return replace(found, qualname=re.search(r"def (\w+)", text)[1], first_line=row, code_flags=flags)


def _indent(source, line):
    text = source.split("\n")[line - 1]
    return len(text) - len(text.lstrip())


def lib(entry, further=0):
    """`path:function` of the standard library where it begins with a slash, else of a package."""
    path, _, function = entry.rpartition(":")
    root = STDLIB if path.startswith("/") else SITE
    return frame(function, f"{root}/{path.lstrip('/')}", 10 + further, code_flags=PLAIN)


def told(source, *calls, kernel=SLEEPS, count=12, moves=False, **more):
    """The stall of a stack of calls, innermost first: calls of the source, or `path:function` of others."""
    stacks = []
    for index in range(count):
        frames = [
            lib(one, index * moves) if re.match(r"/?[\w/]+\.py:", one) else inside(source, one)
            for one in calls
        ]
        stacks.append(stack(*frames))
    return judged(evidence(samples(*stacks, **kernel), **more), source)


# ---- who can await ----------------------------------------------------------------------------------

ORDERS = """\
import time

class Orders:
    def audit(self, deep):
        time.sleep(0.3)

    def check(self):
        self.audit(deep=True)

    async def serve(self):
        self.audit(True)

    async def wait(self):
        time.sleep(0.2)

    def __enter__(self):
        time.sleep(0.4)

    async def enter(self):
        with self.orders: pass

    def __del__(self):
        time.sleep(0.5)

    async def loses(self):
        self.drop(1)

    def drop(self, one):
        gone(one)

    async def through(self):
        self.check()

    async def named(self):
        self.audit(deep=False)

    def total(self):
        crunch(self.rows)

    async def totals(self):
        self.total()

    async def ranked(self):
        self.rows.sort(key=score)

    def beat(self):
        loop.call_later(3, self.beat)
        time.sleep(0.6)

    async def begin(self):
        self.beat()

def score(row):
    time.sleep(0.1)
"""


def to_sleep(seconds: float) -> str:
    return f"replace `time.sleep({seconds})` with `await asyncio.sleep(...)`: it lets the loop run meanwhile."


def in_a_task(function: str, what: str) -> str:
    made = f"Make `{function}` an `async def` if its caller takes one, else let it start a task"
    return f"{made} (`asyncio.create_task(...)`); there, {what}"


class Placed(NamedTuple):
    name: str
    calls: tuple[str, ...]
    says: str


PLACED = [
    Placed(
        "the culprit is a coroutine",
        ("time.sleep(0.2)",),
        "Replace `time.sleep(0.2)` with `await asyncio.sleep(...)`: it lets the loop run meanwhile.",
    ),
    Placed(
        "a coroutine called it",
        ("time.sleep(0.3)", "self.audit(True)"),
        "In `serve` (app.py:11) use `await asyncio.to_thread(self.audit, True)`; or make `audit` an `async "
        f"def` and {to_sleep(0.3)}",
    ),
    Placed(
        "by keywords",
        ("time.sleep(0.3)", "self.audit(deep=False)"),
        "In `named` (app.py:35) use `await asyncio.to_thread(partial(self.audit, deep=False))`; or make "
        f"`audit` an `async def` and {to_sleep(0.3)}",
    ),
    Placed(
        "through another function",
        ("time.sleep(0.3)", "self.audit(deep=True)", "self.check()"),
        "In `through` (app.py:32) use `await asyncio.to_thread(self.check)`; or make `audit` an `async def` "
        f"(its callers, too) and {to_sleep(0.3)}",
    ),
    Placed(
        "through a function of a package",
        ("time.sleep(0.3)", "reader/feed.py:read", "self.check()"),
        "In `through` (app.py:32) use `await asyncio.to_thread(self.check)`.",
    ),
    Placed("the loop called it back", ("time.sleep(0.3)",), in_a_task("audit", to_sleep(0.3))),
    Placed(
        "the loop called a function that called it",
        ("time.sleep(0.3)", "self.audit(deep=True)"),
        in_a_task("check", to_sleep(0.3)),
    ),
    Placed(
        "a package's coroutine called it",
        ("time.sleep(0.3)", "aioserver/app.py:handle"),
        in_a_task("audit", to_sleep(0.3)),
    ),
    Placed(
        "a special method, called by no call",
        ("time.sleep(0.4)", "with self.orders"),
        "Let `__enter__` start a task (`asyncio.create_task(...)`), since it cannot await; in the task, "
        + to_sleep(0.4),
    ),
    Placed(
        "C code calls it back",
        ("time.sleep(0.1)", "self.rows.sort(key=score)"),
        "In `ranked` (app.py:44) use `await asyncio.to_thread(partial(self.rows.sort, key=score))`.",
    ),
    Placed(
        "a function that belongs to the loop's thread",
        ("time.sleep(0.6)", "self.beat()"),
        f"Make `beat` an `async def` that `begin` (app.py:51) awaits, and {to_sleep(0.6)}",
    ),
    Placed(
        "a destructor below a coroutine",
        ("time.sleep(0.5)", "gone(one)", "self.drop(1)"),
        in_a_task("drop", to_sleep(0.5)),
    ),
]


@pytest.mark.parametrize("placed", PLACED, ids=lambda placed: placed.name)
def test_what_has_to_be_awaited_is_said_where_it_can_be(placed):
    assert told(ORDERS, *placed.calls).advice == placed.says


def test_work_that_holds_the_gil_is_handed_to_a_process():
    stall = told(ORDERS, "crunch(self.rows)", "self.total()", kernel=RUNS, moves=True)
    assert stall.cause is Cause.NATIVE_CPU
    assert stall.advice == IN_PROCESS
    stall = told(ORDERS, "/mylib.py:step", "crunch(self.rows)", "self.total()", kernel=RUNS, moves=True)
    assert stall.cause is Cause.CPU
    assert stall.advice == (
        "In `totals` (app.py:41) use `await loop.run_in_executor(process_pool, self.total)`; or make `total` "
        "an `async def` and cut the work up with `await asyncio.sleep(0)` between the pieces, or use a "
        "process pool."
    )


@pytest.mark.parametrize(
    ("loop", "where"),
    [
        ("for one in texts:\n        parse(one)\n", "In `load` (app.py:6), cut the work up with"),
        ("while one := await wait():\n        parse(one)\n", "In `load` (app.py:6) use `await loop.run_in"),
        ("async for one in texts:\n        parse(one)\n", "In `load` (app.py:6) use `await loop.run_in"),
        ("\n    parse(one)\n", "In `load` (app.py:6) use `await loop.run_in"),
    ],
)
def test_a_coroutine_that_repeats_the_work_awaits_in_between(loop, where):
    source = f"def parse(text):\n    return scan(text)\n\nasync def load():\n    {loop}"
    stall = told(source, "/mylib.py:step", "scan(text)", "parse(one)", kernel=RUNS, moves=True)
    assert stall.advice.startswith(where)


def test_a_generator_is_no_call_to_make_elsewhere():
    source = "async def load():\n    return sum(\n        (len(name) for name in walk()))\n"
    stall = told(
        source, "/pathlib.py:stat", "(len(name) for name in walk())", kernel={"syscall": "newfstatat"}
    )
    assert stall.advice == "Run the call with `await asyncio.to_thread(...)`, or use `anyio.Path`."


def test_other_loops_with_coroutines_have_their_own_words():
    stall = told(ORDERS, "time.sleep(0.3)", "self.audit(True)", loop_kind="trio")
    assert stall.advice == (
        "In `serve` (app.py:11) use `await trio.to_thread.run_sync(self.audit, True)`; or make `audit` an "
        "`async def` and wait with `await trio.sleep(...)` (anyio: `await anyio.sleep(...)`) in place of "
        "`time.sleep(0.3)`."
    )
    stall = told(ORDERS, "time.sleep(0.3)", "self.audit(True)", loop_kind="qt")
    assert stall.advice.startswith("Use `QTimer.singleShot` in place of")


def test_a_comprehension_awaits_where_its_function_does():
    source = "async def load(paths):\n    return [time.sleep(0.2) for path in paths]\n"
    here = inside(source, "time.sleep(0.2)")
    inner = replace(here, qualname="load.<locals>.<listcomp>", code_flags=PLAIN)
    stall = judged(evidence(samples(*[stack(inner, here)] * 12, **SLEEPS)), source)
    assert stall.advice.startswith("Replace `time.sleep(0.2)`")


def test_without_flags_the_advice_is_as_for_a_coroutine():
    source = "def load():\n    time.sleep(0.2)\n"
    stall = judged(evidence(samples(*[stack(at("time.sleep(0.2)", source))] * 12, **SLEEPS)), source)
    assert stall.advice.startswith("Replace `time.sleep(0.2)`")


# ---- the GIL, the holder, polling, and what else the code around says --------------------------------

CODE = """\
import time, numpy as np

def flush(self):
    with self._lock:
        self.write(self.rows)

def write(self, rows):
    time.sleep(0.5)

def rank(rows):
    return sorted(rows)

async def append(self, row):
    self._lock.acquire()

async def total(self, orders):
    with self._lock, orders: pass

async def stop(self):
    self._beat.join()
    pool.shutdown()
    with self.pool: pass
    results.get()
    line = file.readline()
    print(line)
    os.read(changes, 100)
    changes.poll(300)
    open(commands)

async def wait(self):
    while not self.ready:
        time.sleep(0.005)
    time.sleep(0.2)
    libc.poll(None, 0, 300)
    while time.time() < until: pass
    for text in texts:
        try:
            int(text)
        except ValueError: pass
    future = asyncio.run_coroutine_threadsafe(load(), self.loop)
    future.result(3)

async def compute(self):
    scores @ scores.T
    np.sort(scores)
    pd.concat(frames)
    ledger.summary()
    json.dumps(self.rows)
    rows = list(csv.reader(file))
    rate = str(number)
    rules.apply(pages)
    smtp.send_message(mail)

def emit(self, record):
    requests.post(url, record)

def summary(self):
    return 3
"""


def by(*calls):
    """The stack of the thread that holds what the stall waits for."""
    frames = [inside(CODE, call) for call in calls]
    return stack(*frames, lib("/threading.py:_bootstrap"), loop=False)


def held(kind, proof, *calls, taken_at=None):
    lock = LockView(kind=kind, proof=proof, taken_at=taken_at)
    return {**WAITS, "lock": lock, "holder_tid": 71, "holder_stack": by(*calls)}


SLEEPER = ("time.sleep(0.5)", "self.write(self.rows)")
MOVE = (
    "Move `self.write(self.rows)` (app.py:5) out of the `with self._lock` block in `flush`: do it "
    "before or after."
)
WAIT = "Wait for the lock with `await asyncio.to_thread(...)`, or do not share it with that thread."
HOLD_LESS = f"Hold the lock for less in `rank` (app.py:11): do the slow part before or after. {WAIT}"
SHUT_DOWN = (
    "Shut the executor down by `await loop.run_in_executor(None, executor.shutdown)`, or after the loop."
)
THREAD = held("thread", LockProof.OWNER, "sorted(rows)")
EVENTS = {"syscall": "read", "target": Target(kind=TargetKind.OTHER, name="anon_inode:inotify")}
PIPE = {"syscall": "read", "target": Target(kind=TargetKind.PIPE, name="")}
DNS = {"syscall": "poll"}
IN_PROCESS = (
    "Give it less at a time, or run it in a process pool: it holds the GIL, so that a thread does not help."
)
ON_THREAD = "Run it with `await asyncio.to_thread(...)`: it releases the GIL while it works."


class Known(NamedTuple):
    name: str
    calls: tuple[str, ...]
    kernel: dict
    says: str
    more: dict | None = None


KNOWN = [
    Known(
        "the holder sleeps in its block",
        ("self._lock.acquire()",),
        held("lock", LockProof.WITH, *SLEEPER, taken_at=2),
        f"{MOVE} {WAIT}",
    ),
    Known(
        "the same, waited for by with",
        ("with self._lock, orders",),
        held("lock", LockProof.WITH, *SLEEPER, taken_at=2),
        f"{MOVE} {WAIT}",
    ),
    Known(
        "the same, in Qt",
        ("self._lock.acquire()",),
        held("lock", LockProof.WITH, *SLEEPER, taken_at=2),
        f"{MOVE} Do not wait for threads: let the thread emit a signal when it is done.",
        {"loop_kind": "qt"},
    ),
    Known(
        "the holder's block is not known",
        ("self._lock.acquire()",),
        held("RLock", LockProof.OWNER, "sorted(rows)"),
        HOLD_LESS,
    ),
    Known(
        "a lock of processes that a thread of this one holds",
        ("/multiprocessing/synchronize.py:__enter__", "with self._lock, orders"),
        held("multiprocessing.RLock", LockProof.OWNER, "sorted(rows)"),
        HOLD_LESS,
    ),
    Known(
        "a lock of processes that another one holds",
        ("/multiprocessing/synchronize.py:__enter__", "with self._lock, orders"),
        {**WAITS, "lock": LockView(kind="multiprocessing.Lock", proof=LockProof.NONE)},
        "Wait for the other process on a thread, with `await asyncio.to_thread(...)` of a function that "
        "takes the lock and releases it.",
    ),
    Known(
        "another thread holds the GIL",
        ("json.dumps(self.rows)",),
        {
            **WAITS,
            "waits_for_gil": True,
            "gil": GilState.OTHER,
            "holder_tid": 71,
            "holder_stack": by("sorted(rows)"),
        },
        "Split the work of `rank` (app.py:11) into smaller pieces, or move it to a process: it holds the "
        "GIL.",
    ),
    Known(
        "a thread that could not be read holds the GIL",
        ("json.dumps(self.rows)",),
        {**WAITS, "waits_for_gil": True, "gil": GilState.OTHER},
        "Split the work of the thread that holds it into smaller pieces, or move it to a process: it holds "
        "the GIL.",
    ),
    Known(
        "a thread of any name is joined",
        ("/threading.py:join", "self._beat.join()"),
        THREAD,
        "Wait for the thread's end with `await asyncio.to_thread(thread.join)`, or start its work with "
        "`await asyncio.to_thread(...)`.",
    ),
    Known(
        "an executor is shut down",
        ("/threading.py:join", "/concurrent/futures/thread.py:shutdown", "pool.shutdown()"),
        THREAD,
        SHUT_DOWN,
    ),
    Known(
        "by the end of its block",
        ("/threading.py:join", "/concurrent/futures/thread.py:shutdown", "with self.pool"),
        THREAD,
        SHUT_DOWN,
    ),
    Known(
        "a queue of multiprocessing is empty",
        ("/multiprocessing/connection.py:_recv", "/multiprocessing/queues.py:get", "results.get()"),
        PIPE,
        "Wait for the other process on a thread: `await asyncio.to_thread(queue.get)`, or "
        "`asyncio.to_thread(queue.put, item)`.",
    ),
    Known(
        "another pipe is empty",
        ("file.readline()",),
        PIPE,
        "Read the pipe through the loop (`asyncio.create_subprocess_exec`, `await "
        "process.stdout.readline()`), or "
        "on another thread.",
    ),
    Known(
        "files are watched",
        ("os.read(changes, 100)",),
        EVENTS,
        "Let the loop watch the descriptor with `loop.add_reader(...)`, or run `os.read(changes, 100)` with "
        "`await asyncio.to_thread(...)`.",
    ),
    Known(
        "the same, polled",
        ("changes.poll(300)",),
        {**EVENTS, "syscall": "poll"},
        "Let the loop watch the descriptor with `loop.add_reader(...)`, or run `changes.poll(300)` with "
        "`await asyncio.to_thread(...)`.",
    ),
    Known(
        "the same, in Qt",
        ("os.read(changes, 100)",),
        EVENTS,
        "Watch the descriptor with a `QSocketNotifier`, or run `os.read(changes, 100)` on another thread.",
        {"loop_kind": "qt"},
    ),
    Known(
        "a fifo is opened",
        ("open(commands)",),
        {"syscall": "openat", "state": "S"},
        "Run `open(commands)` with `await asyncio.to_thread(...)`; a fifo opens at once with `os.O_RDWR`, or "
        "once its other end is open.",
    ),
    Known(
        "a loop polls",
        ("time.sleep(0.005)",),
        SLEEPS_AGAIN,
        "Await an `asyncio.Event` with a timeout (`asyncio.wait_for`) in place of polling with "
        "`time.sleep(0.005)`.",
    ),
    Known(
        "a C function sleeps",
        ("libc.poll(None, 0, 300)",),
        {"syscall": "poll", "args": (0, 0, 300)},
        "Run `libc.poll(None, 0, 300)` with `await asyncio.to_thread(...)`: the sleep is inside it.",
    ),
    Known(
        "a loop waits for the clock",
        ("time.time()",),
        RUNS,
        "Wait with `await asyncio.sleep(...)` for the time that is left, in place of a loop that looks at "
        "the clock.",
    ),
    Known(
        "a client is made from its description",
        (
            "/json/decoder.py:decode",
            "botocore/loaders.py:load",
            "boto3/session.py:client",
            "rules.apply(pages)",
        ),
        RUNS,
        "Make clients once, at the start, and keep them: each reads the description of its service anew.",
    ),
    Known(
        "a loop of attempts",
        ("int(text)",),
        RUNS,
        "Check first what often fails here, since an exception costs more, and cut the work "
        "up with "
        "`await asyncio.sleep(0)` between the pieces.",
    ),
    Known(
        "the loop waits for itself",
        ("/threading.py:wait", "/concurrent/futures/_base.py:result", "future.result(3)"),
        WAITS,
        "Await the coroutine itself: on the loop's own thread, waiting for it here never ends.",
    ),
    Known("an operation that kept the GIL", ("scores @ scores.T",), RUNS, IN_PROCESS),
    Known("one that had released it", ("scores @ scores.T",), FREE, ON_THREAD),
    Known("a call that mostly releases it, and did not", ("np.sort(scores)",), RUNS, IN_PROCESS),
    Known("one that mostly holds it, and did not", ("pd.concat(frames)",), FREE, ON_THREAD),
    Known(
        "a function frees what it made",
        ("ledger.summary()",),
        RUNS,
        "Let `ledger.summary()` make fewer objects, or free them in pieces: a function frees its objects "
        "as it returns, and holds the GIL.",
    ),
    Known(
        "a task frees what it kept",
        (),
        RUNS,
        "Before the task ends, free in pieces what it keeps: freeing so many objects at once takes long, "
        "and holds the GIL.",
    ),
    Known(
        "serialised, not parsed",
        ("/json/encoder.py:encode", "/json/__init__.py:dumps", "json.dumps(self.rows)"),
        RUNS,
        "Use a faster serialiser (orjson, msgspec), or smaller documents; `asyncio.to_thread` does not "
        "help, since the call holds the GIL.",
    ),
    Known(
        "digits of a number",
        ("/_pylong.py:inner", "str(number)"),
        RUNS,
        "Bound the digits, use floats or gmpy2 where that does, or compute in a process pool: exact "
        "numbers are slow.",
        {"moves": True},
    ),
    Known(
        "a name is resolved by a package",
        ("/socket.py:getaddrinfo", "/smtplib.py:connect", "smtp.send_message(mail)"),
        DNS,
        "Use aiosmtplib, or send the mail with `await asyncio.to_thread(...)`. Look at the resolver, too "
        "(`/etc/resolv.conf`), or keep the address: the name takes long to resolve.",
    ),
    Known(
        "a handler of logging waits",
        ("requests/api.py:post", "requests.post(url, record)", "/logging/__init__.py:handle", "print(line)"),
        {"syscall": "recvfrom"},
        "Put `logging.handlers.QueueHandler` before this handler, which cannot await: a `QueueListener` "
        "thread then calls it.",
    ),
]


@pytest.mark.parametrize("known", KNOWN, ids=lambda known: known.name)
def test_advice_goes_by_what_is_known(known):
    stall = told(CODE, *known.calls, kernel=known.kernel, **(known.more or {}))
    assert stall.advice == known.says, (stall.cause, stall.evidence)


WINDOW = """\
def main():
    app.exec()
    query.exec()
    self.text.see("end")
    parse(report)
"""


@pytest.mark.parametrize(
    ("calls", "loop", "is_silent"),
    [
        (("app.exec()",), "qt", True),
        (("query.exec()",), "asyncio", False),
        (("tkinter/__init__.py:see", 'self.text.see("end")'), "tk", True),
        (("parse(report)",), "tk", False),
    ],
)
def test_what_belongs_to_the_loops_thread_is_not_moved(calls, loop, is_silent):
    stall = told(WINDOW, *calls, kernel=RUNS, loop_kind=loop)
    assert (stall.advice is None) is is_silent, stall.advice


def test_a_packages_own_line_is_not_advised_about_as_any_line():
    assert told("", "fastapi/encoders.py:jsonable_encoder", kernel=RUNS, moves=True).advice is None
    assert told("", "fastapi/encoders.py:jsonable_encoder", kernel=SLEEPS).advice is None
    own = told(WINDOW, "fastapi/encoders.py:jsonable_encoder", "parse(report)", kernel=RUNS, moves=True)
    assert own.advice is not None


FREES = "make fewer objects, or free them in pieces: a function frees its objects as it returns"
LEDGER = "class Ledger:\n    def summary(self):\n        return 3\n"


@pytest.mark.parametrize(
    ("imported", "call"),
    [
        ("import ledger", "ledger.summary()"),
        ("from ledger import summary", "summary()"),
        ("from ledger import (\n    other,\n    summary,\n)", "summary()"),
        ("import os, ledger as books", "books.summary()"),
        ("from . import ledger", "ledger.summary()"),
        ("from .ledger import Ledger\nbooks = Ledger(3)", "books.summary()"),
        ("from ledger import Ledger  # all of it\nbooks: Ledger", "self.books.summary()"),
    ],
)
def test_an_imported_function_frees_what_it_made(imported, call):
    source = f"{imported}\ndef handler(self):\n    {call}\n"
    taken = samples(*[stack(inside(source, call))] * 12, **RUNS)
    assert FREES in judged(evidence(taken), sources=Texts(app=source, ledger=LEDGER)).advice
    assert judged(evidence(taken), sources=Texts(app=source, other=LEDGER)).advice == IN_PROCESS


@pytest.mark.parametrize(
    "imported", ["from hashes import crunch", "import ledger", "from ledger import other"]
)
def test_a_call_of_another_name_frees_nothing(imported):
    """The text of `ledger` has a function of the call's name, and the call is of something else."""
    source = f"{imported}\ndef handler(hashes):\n    hashes.summary()\n"
    taken = samples(*[stack(inside(source, "hashes.summary()"))] * 12, **RUNS)
    assert judged(evidence(taken), sources=Texts(app=source, ledger=LEDGER)).advice == IN_PROCESS


def test_a_function_that_samples_reached_frees_what_it_made():
    source = "def handler(books):\n    books.summary()\n    books.summary(3)\n"
    inner = stack(frame("summary", f"{SITE}/books.py", 7), inside(source, "books.summary()"))
    freeing = stack(inside(source, "books.summary(3)"))
    assert FREES in judged(evidence(samples(*[inner] * 5, *[freeing] * 9, **RUNS)), source).advice
    assert judged(evidence(samples(*[freeing] * 14, **RUNS)), source).advice == IN_PROCESS


PAGE = """\
class Page:
    def __init__(self):
        self.body = ""

    def build(self, rows):
        text, count, page = "", 0, ""
        line: str = f""
        for row in rows:
            self.body += row
            self.body = self.body + row.head + row.foot
            line += row
            count += row
            rows += [row]
            count = count + len(row)
            key = "row" + row
            rest += "\\n"
"""


@pytest.mark.parametrize(
    ("call", "grows"),
    [
        ("self.body += row", True),
        ("self.body + row.head", True),
        ("self.body + row.head + row.foot", True),
        ("line += row", True),
        ('rest += "\\n"', True),
        ("count += row", False),
        ("rows += [row]", False),
        ("count + len(row)", False),
        ('"row" + row', False),
    ],
)
def test_a_text_that_grows_in_a_loop_is_joined_once(call, grows):
    here = stack(inside(PAGE, call))
    says = "Collect the parts in a list and join them once, after the loop: each `+` copies the whole text."
    stall = judged(evidence(samples(*[here] * 12, **RUNS)), PAGE)
    assert stall.cause is Cause.CPU
    assert (stall.advice == says) is grows
    elsewhere = [stack(inside(PAGE, "count += row"))] * 12
    assert judged(evidence(samples(*[here] * 9, *elsewhere, **RUNS)), PAGE).advice != says


def test_a_polling_loop_is_counted():
    stall = told(CODE, "time.sleep(0.005)", kernel=SLEEPS_AGAIN)
    assert stall.title == "polling by time.sleep(0.005) in wait (app.py:32)"
    assert "About 28 calls of `time.sleep(0.005)` in a row, in the loop of line 31." in stall.evidence
    long, stopped = told(CODE, "time.sleep(0.2)", kernel=SLEEPS_AGAIN), told(CODE, "time.sleep(0.005)")
    assert not [said for said in (*long.evidence, *stopped.evidence) if "in a row" in said]


def test_the_holder_of_a_lesser_cause_is_not_advised_about():
    computing = samples(*[stack(inside(CODE, "scores @ scores.T"))] * 12, **RUNS)
    joining = samples(*[stack(lib("/threading.py:join"), inside(CODE, "self._beat.join()"))] * 6, **THREAD)
    later = tuple(
        replace(
            one,
            at_ns=one.at_ns + 120_000_000,
            kernel=replace(one.kernel, on_cpu_ns=120_000_000, run_queue_ns=0),
        )
        for one in joining
    )
    stall = judged(evidence((*computing, *later)), CODE)
    assert (stall.cause, stall.second_cause) == (Cause.NATIVE_CPU, Cause.LOCK)
    assert stall.advice == IN_PROCESS


def test_modules_are_those_of_most_of_the_time_not_of_one_sample():
    rest = [inside(CODE, "rules.apply(pages)")]
    rows = [("/csv.py:__next__", 8), ("mine/dates.py:parse", 3), ("mine/dates.py:split", 3)]
    stacks = [stack(lib(entry, index), *rest) for entry, count in rows for index in range(count)]
    stall = judged(evidence(samples(*stacks, **RUNS)), CODE)
    assert stall.cause is Cause.CPU
    assert stall.advice.startswith("Read the rows in batches")


# ---- a call that a loop makes again and again -----------------------------------------------------------

FEED = """\
import json

async def read(lines, rows):
    for line in lines:
        rows.append(json.loads(line))
        rows[-1]["seen"] = True
    json.loads(lines)
    for line in lines:
        try:
            rows.append(json.loads(line))
        except ValueError:
            logger.exception(line)
        except KeyError:
            rows.remove(line)
"""
DECODER = "/json/decoder.py:decode"
ANEW = "Let the loop run between so many calls of `json.loads(line)`"
FASTER = "faster parser"
TRIED = "Check first what often fails"


def fed(*rows, **more):
    """The stall of samples at lines of FEED, each in json's decoder or not."""
    texts = {
        5: "json.loads(line)",
        6: "rows[-1]",
        7: "json.loads(lines)",
        11: "except ValueError:",
        12: "logger.exception(line)",
        14: "rows.remove(line)",
    }
    stacks = [stack(*([lib(DECODER)] if inner else []), inside(FEED, texts[row])) for row, inner in rows]
    return judged(evidence(samples(*stacks, **RUNS), **more), FEED)


def test_small_calls_of_a_loop_are_told_from_a_large_one():
    between = [(5, True), (5, True), (6, False)] * 6
    assert ANEW in fed(*between).advice
    assert FASTER in fed(*[(5, True)] * 18).advice  # it may be one call
    assert FASTER in fed(*[(7, True)] * 18).advice
    assert FASTER in fed(*[(5, True)] * 9, (6, False), *[(5, True)] * 8).advice


def test_exceptions_are_blamed_only_where_a_loop_raises_them():
    assert TRIED in fed(*[(11, False)] * 18).advice
    assert TRIED not in fed(*[(12, True)] * 18).advice
    assert TRIED not in fed(*[(14, False)] * 18).advice


# ---- a call that was meant to run elsewhere -----------------------------------------------------------

STARTS = """\
class Worker(QThread):
    def run(self):
        crunch(self.rows)

class Report:
    def run(self):
        crunch(self.pages)

class Window:
    def build(self):
        self.worker.moveToThread(self.thread)

    def start(self):
        Thread(target=self.load(), daemon=True).start()
        pool.submit(self.load(1))
        self.root.after(10, self.load(2))
        self.load(3)
        plan(target=self.load(4))
        self.worker.work()
        self.other.work(5)
        self.thread.run()
        self.report.run()

    def load(self, which=0):
        crunch(which)

    def work(self):
        crunch(self.frames)
"""
HANDED, SLOT, RUN = "Pass the function", "Emit a signal", "Call `start()`"


@pytest.mark.parametrize(
    ("calls", "says"),
    [
        (("crunch(which)", "self.load()"), HANDED),
        (("crunch(which)", "self.load(1)"), HANDED),
        (("crunch(which)", "self.load(2)"), HANDED),
        (("crunch(which)", "self.load(3)"), None),
        (("crunch(which)", "self.load(4)"), None),
        (("crunch(self.frames)", "self.worker.work()"), SLOT),
        (("crunch(self.frames)", "self.other.work(5)"), None),
        (("crunch(self.rows)", "self.thread.run()"), RUN),
        (("crunch(self.pages)", "self.report.run()"), None),
    ],
)
def test_a_call_on_the_wrong_thread_is_told_by_where_it_is_written(calls, says):
    kinds = {"crunch(self.rows)": "Worker.run", "crunch(self.pages)": "Report.run"}
    inner, outer = (inside(STARTS, call) for call in calls)
    inner = replace(inner, qualname=kinds.get(calls[0], inner.qualname))
    stacks = [stack(lib("/mylib.py:step", index), inner, outer) for index in range(12)]
    advice = judged(evidence(samples(*stacks, **RUNS), loop_kind="qt"), STARTS).advice
    assert [one for one in (HANDED, SLOT, RUN) if one in advice] == ([says] if says else [])


# ---- a library inside of a call, and a generator that never waits --------------------------------------

STREAM = """\
async def lines(days):
    for day in days:
        total = fsum(day)
        yield str(total)

async def slow(days):
    async for day in days:
        yield fsum(day)

async def check(mail):
    verify(mail)
    await verify(mail, 2)
    socket.getaddrinfo(mail, 25)
"""
GENERATOR = {"code_flags": 0x203}
YIELDS = "Let the loop run between the pieces that `lines` yields"


@pytest.mark.parametrize(
    ("call", "between", "is_said"),
    [("fsum(day)", True, True), ("fsum(day)", False, False), ("yield fsum(day)", True, False)],
)
def test_a_generator_that_never_waits_is_told_by_its_yields(call, between, is_said):
    here = stack(lib("/statistics.py:fsum"), replace(inside(STREAM, call), **GENERATOR))
    sends = stack(lib("starlette/responses.py:send"))
    taken = samples(*[here, here, sends if between else here] * 6, **RUNS)
    assert (YIELDS in (judged(evidence(taken), STREAM).advice or "")) is is_said


RESOLVER = ("dns/resolver.py:resolve", "mailcheck/check.py:verify")


@pytest.mark.parametrize(
    ("calls", "kernel", "says"),
    [
        (
            (*RESOLVER, "verify(mail)"),
            DNS,
            "Run `verify(mail)` with `await asyncio.to_thread(...)`: the wait is inside it.",
        ),
        (
            ("/subprocess.py:wait", "mailcheck/check.py:verify", "verify(mail)"),
            WAITS,
            "the wait is inside it.",
        ),
        (("socket.getaddrinfo(mail, 25)",), DNS, "Resolve names with `await loop.getaddrinfo(...)`"),
        (
            ("mailcheck/check.py:verify", "verify(mail)"),
            RUNS,
            "where it and the loop take turns with the GIL",
        ),
    ],
)
def test_what_waits_or_computes_inside_a_library_is_run_elsewhere(calls, kernel, says):
    assert says in told(STREAM, *calls, kernel=kernel, moves=kernel is RUNS).advice


@pytest.mark.parametrize("kernel", [RUNS, DNS, {"syscall": "recvfrom"}])
def test_a_coroutine_of_a_library_that_is_awaited_goes_to_no_thread(kernel):
    below = replace(lib("mailcheck/check.py:verify"), code_flags=ASYNC)
    taken = samples(*[stack(below, inside(STREAM, "await verify(mail, 2)"))] * 12, **kernel)
    assert judged(evidence(taken), STREAM).advice is None
