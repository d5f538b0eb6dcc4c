"""Which stalls in tests each tool finds, and what it costs: `pytest --loopcanary` beside asyncio's debug
mode, pyleak, blockbuster and aiocop.

Each case is one test in a pytest process of its own, with pytest-asyncio and a limit of 100 ms. A stall lasts
some 250 ms, two calls below the test. `line`: the test failed, and the output names the line that blocked;
`found`: it failed without that line; `-`: it passed. Where nothing blocks the loop for long, a failed test is
`wrong`. (blockbuster raises at a call, however short it is.)

Cost: what a run with one turn takes more, and the CPU time of tests that only take turns, by that of
the same tests without the tool. Medians of paired runs.

Needs, in the Python that runs it: pip install pytest-asyncio pyleak blockbuster aiocop
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from harness import table

LIMIT_MS = 100
PAIRS = table.sized(5, 1)
TURNS = table.sized(10_000, 100)

IMPORTS = """
import asyncio, json, math, os, queue, re, socket, sqlite3, subprocess, sys, threading, time
from concurrent.futures import ThreadPoolExecutor
import pytest

def later(work, seconds=0.25):
    timer = threading.Timer(seconds, work)
    timer.daemon = True
    timer.start()
    return timer

def long_for(work):
    '''A size for which `work` takes some 250 ms.'''
    size = 1000
    while True:
        began = time.perf_counter()
        work(size)
        took = time.perf_counter() - began
        if took > 0.05:
            return int(size * 0.25 / took)
        size *= 2
"""

LOCKED = """
one = sqlite3.connect(f'{tmp_path}/db', check_same_thread=False)
one.execute('create table t(a)')
one.commit()
one.execute('begin exclusive')
two = sqlite3.connect(f'{tmp_path}/db')
later(one.rollback)
"""

STALLS = {
    "time.sleep": ("", "time.sleep(0.25)"),
    "time.sleep, exception caught": ("", "try: time.sleep(0.25)\nexcept Exception: time.sleep(0.25)"),
    "socket.recv": ("a, b = socket.socketpair(); later(lambda: b.send(b'x'))", "a.recv(1)"),
    "open of a pipe": (
        "path = f'{tmp_path}/pipe'; os.mkfifo(path); later(lambda: os.close(os.open(path, os.O_WRONLY)))",
        "open(path).close()",
    ),
    "subprocess.run": ("", "subprocess.run(['sleep', '0.25'])"),
    "sqlite3, database locked": (LOCKED, "two.execute('insert into t values (1)')"),
    "threading.Lock": ("lock = threading.Lock(); lock.acquire(); later(lock.release)", "lock.acquire()"),
    "Future.result": ("job = ThreadPoolExecutor(1).submit(time.sleep, 0.25)", "job.result()"),
    "Thread.join": ("thread = later(lambda: None)", "thread.join()"),
    "queue.get": ("jobs = queue.Queue(); later(lambda: jobs.put(1))", "jobs.get()"),
    "re, GIL held": (
        "n = round(math.log2(long_for(lambda n: re.match('(a+)+$', 'a' * int(math.log2(n)) + 'b'))))",
        "re.match('(a+)+$', 'a' * n + 'b')",
    ),
    "json.dumps": (
        "rows = [{'a': [1, 2.5, 'x']}] * long_for(lambda n: json.dumps([{'a': [1, 2.5, 'x']}] * n))",
        "json.dumps(rows)",
    ),
    "Python code": ("n = long_for(lambda n: sum(i * i for i in range(n)))", "sum(i * i for i in range(n))"),
    "os.waitpid": ("child = subprocess.Popen(['sleep', '0.25'])", "os.waitpid(child.pid, 0)"),
}
"""What is done before, outside the loop's callback, and the line that blocks."""

CONTROLS = {
    "asyncio.sleep": "await asyncio.sleep(0.25)",
    "to_thread(time.sleep)": "await asyncio.to_thread(time.sleep, 0.25)",
    "to_thread(Python code)": "await asyncio.to_thread(lambda: sum(range(3_000_000)))",
    "asyncio's subprocess": "await (await asyncio.create_subprocess_exec('sleep', '0.25')).wait()",
    "a short sleep": "time.sleep(0.001)",
    "a small file": "open(__file__).read()",
    "sqlite3 in memory": "sqlite3.connect(':memory:').execute('select 1').fetchall()",
    "another loop's stall": "",
}

STALL_TEST = """{imports}
@pytest.fixture
def inner(tmp_path):
    {before}
    def inner():
        {line}
    return inner

def outer(inner):
    inner()

{marker}
async def test_case(inner):
    await asyncio.sleep(0.05)
    outer(inner)
    await asyncio.sleep(0.05)
"""

CONTROL_TEST = """{imports}
{marker}
async def test_case():
    await asyncio.sleep(0.05)
    {line}
    await asyncio.sleep(0.05)
"""

COST_TEST = """{imports}
{marker}
@pytest.mark.parametrize("number", range(40))
async def test_case(number):
    for _ in range({turns}):
        await asyncio.sleep(0)
"""

DEBUG = """
import asyncio, logging
import pytest, pytest_asyncio

@pytest_asyncio.fixture(autouse=True)
async def slow_callbacks(caplog):
    loop = asyncio.get_running_loop()
    loop.set_debug(True)
    loop.slow_callback_duration = {limit}
    yield
    records = caplog.get_records("call")
    slow = [record.getMessage() for record in records if " took " in record.getMessage()]
    assert not slow, slow
"""

BLOCKBUSTER = """
import pytest
from blockbuster import blockbuster_ctx

@pytest.fixture(autouse=True)
def blocking():
    with blockbuster_ctx():
        yield
"""

AIOCOP = """
import aiocop, pytest, pytest_asyncio

events = []
aiocop.patch_audit_functions()
aiocop.start_blocking_io_detection(trace_depth=20)
aiocop.detect_slow_tasks(threshold_ms={limit} * 1000, on_slow_task=events.append)

@pytest_asyncio.fixture(autouse=True)
async def slow_tasks():
    events.clear()
    aiocop.activate()
    yield
    slow = [event for event in events if event.exceeded_threshold]
    assert not slow, "\\n".join(map(str, slow))
"""

LEAKS = (
    f"@pytest.mark.no_leaks(tasks=False, threads=False, blocking=True, blocking_threshold={LIMIT_MS / 1000})"
)
_ASYNCIO = "@pytest.mark.asyncio"
TOOLS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "loopcanary": ("", _ASYNCIO, (f"--loopcanary-fail={LIMIT_MS}ms",)),
    "asyncio debug": (DEBUG, _ASYNCIO, ()),
    "pyleak": ("", f"{LEAKS}\n{_ASYNCIO}", ()),
    "blockbuster": (BLOCKBUSTER, _ASYNCIO, ()),
    "aiocop": (AIOCOP, _ASYNCIO, ()),
}
"""Of each the conftest, the marks of a test, and options."""


def run(folder: Path, test: str, tool: str | None) -> tuple[int, str, float]:
    """Exit status, output, and CPU seconds of pytest over one file."""
    conftest, marker, options = ("", _ASYNCIO, ()) if tool is None else TOOLS[tool]
    (folder / "conftest.py").write_text(conftest.replace("{limit}", str(LIMIT_MS / 1000)), encoding="utf-8")
    (folder / "test_case.py").write_text(test.replace("{marker}", marker), encoding="utf-8")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, "test_case.py"]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return done.returncode, done.stdout + done.stderr, cpu


def stall_verdict(folder: Path, name: str, tool: str) -> str:
    """`line`, `found` or `-`."""
    before, line = STALLS[name]
    before, inside = (textwrap.indent(text, " " * by).strip() for text, by in ((before, 4), (line, 8)))
    test = STALL_TEST.replace("{imports}", IMPORTS).replace("{before}", before).replace("{line}", inside)
    status, output, _ = run(folder, test, tool)
    if status == 0:
        return "-"
    number = next(n for n, text in enumerate(test.splitlines(), 1) if text.strip() == line.splitlines()[0])
    last = number + line.count("\n")
    places = [f"test_case.py{between}{n}" for n in (number, last) for between in (":", '", line ')]
    return "line" if any(place in output for place in places) else "found"


def control_verdict(folder: Path, name: str, tool: str) -> str:
    """`wrong` or `-`."""
    line = CONTROLS[name] or (
        "thread = threading.Thread(target=lambda: asyncio.run(asyncio.sleep(0.1))); thread.start(); "
        "await asyncio.to_thread(thread.join)"
    )
    test = CONTROL_TEST.replace("{imports}", IMPORTS).replace("{line}", line)
    return "-" if run(folder, test, tool)[0] == 0 else "wrong"


def costs(folder: Path, tool: str) -> tuple[float, float]:
    """What a run costs more, in ms of CPU; the CPU time of turns with the tool by that without. Medians."""
    starts, ratios = [], []
    for _ in range(PAIRS):
        few, many = ([_cpu(folder, each, turns) for each in (tool, None)] for turns in (1, TURNS))
        starts.append((few[0] - few[1]) * 1000)
        ratios.append((many[0] - few[0]) / (many[1] - few[1]))
    return statistics.median(starts), statistics.median(ratios)


def _cpu(folder: Path, tool: str | None, turns: int) -> float:
    return run(folder, COST_TEST.replace("{imports}", IMPORTS).replace("{turns}", str(turns)), tool)[2]


def rows(folder: Path) -> Iterator[list[str]]:
    """What, and a verdict for each tool."""
    for name in [*STALLS][: table.sized(len(STALLS), 1)]:
        yield [name, *(stall_verdict(folder, name, tool) for tool in TOOLS)]
    for name in [*CONTROLS][: table.sized(len(CONTROLS), 1)]:
        yield [f"nothing blocks: {name}", *(control_verdict(folder, name, tool) for tool in TOOLS)]
    starts, turns = zip(*(costs(folder, tool) for tool in TOOLS), strict=True)
    yield ["a run costs more, ms of CPU", *(f"{start:.0f}" for start in starts)]
    yield ["CPU time of turns, with / without", *(f"{ratio:.2f}" for ratio in turns)]


def main() -> None:
    """Prints a table in Markdown, row by row."""
    missing = [
        name for name in ("pytest_asyncio", "pyleak", "blockbuster", "aiocop") if find_spec(name) is None
    ]
    if missing:
        print(f"not measured: {', '.join(missing)} not installed; the first lines of this file say how")
        return
    print("|", " | ".join(["", *TOOLS]), "|")
    print("|---" * (len(TOOLS) + 1) + "|")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        for row in rows(Path(place)):
            print("|", " | ".join(row), "|", flush=True)


if __name__ == "__main__":
    main()
