"""`loopcanary dump --tasks`: programs whose tasks wait for known things, seen from outside."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from loopcanary.assembly.dump import look_at
from loopcanary.document import markdown
from loopcanary.model import Frame
from loopcanary.model.circles import task_circles
from loopcanary.model.outside import ProcessSight, TaskSight, TaskState, TaskWait
from loopcanary.model.task_reads import TaskAwait, TaskRead, holders
from loopcanary.report.dump import dump_document
from loopcanary.report.tasks import wait_words

from . import targets

pytestmark = [
    pytest.mark.native,
    pytest.mark.skipif(sys.platform != "linux", reason="other processes are read by /proc"),
]
Run = Callable[..., "subprocess.CompletedProcess[str]"]

KINDS = """
async def deep():
    await asyncio.sleep(10_000)
async def nested():
    await deep()
async def numbers():
    await asyncio.sleep(10_000)
    yield 1
async def generator():
    async for _ in numbers():
        pass
async def lock(held):
    async with held:
        pass
async def holder(held):
    async with held:
        await deep()
@contextlib.asynccontextmanager
async def managed(held):
    async with held:
        yield
async def manager(held):
    async with managed(held):
        await deep()
async def semaphore(held):
    async with held:
        await deep()
async def event():
    await asyncio.Event().wait()
async def condition():
    async with (one := asyncio.Condition()):
        await one.wait()
async def notified(one):
    async with one:
        await one.wait()
async def barrier():
    await asyncio.Barrier(2).wait()
async def get():
    await asyncio.Queue().get()
async def put():
    queue = asyncio.Queue(1)
    queue.put_nowait(1)
    await queue.put(2)
async def thread():
    await asyncio.to_thread(time.sleep, 10_000)
async def executor():
    await asyncio.get_running_loop().run_in_executor(None, time.sleep, 10_000)
async def gathered():
    await asyncio.gather(deep(), deep())
async def other(task):
    await task
async def timed():
    async with asyncio.timeout(10_000):
        await asyncio.Event().wait()
async def waited_for():
    await asyncio.wait_for(asyncio.Event().wait(), 10_000)
async def group():
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(deep(), name="in a group")
async def child():
    quiet = {"stdout": -3, "stderr": -3}  # a pipe of the test's would stay open
    await (await asyncio.create_subprocess_exec("cat", stdin=-1, **quiet)).wait()  # ends with this program
async def stream(port):
    reader, _ = await asyncio.open_connection("127.0.0.1", port)
    await reader.readline()
async def future():
    await asyncio.get_running_loop().create_future()
async def main():
    connections = []
    server = await asyncio.start_server(lambda *both: connections.append(both), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1])
    held, by_manager, semaphores = asyncio.Lock(), asyncio.Lock(), asyncio.Semaphore(2)
    taken, free = asyncio.Lock(), asyncio.Condition()
    await taken.acquire()
    bodies = {
        "holder": holder(held), "lock": lock(held), "manager": manager(by_manager),
        "behind a manager": lock(by_manager), "acquired by hand": lock(taken),
        "waiter": notified(free), "by condition": holder(free), "its lock": lock(free),
        "semaphore 1": semaphore(semaphores), "semaphore 2": semaphore(semaphores),
        "semaphore 3": semaphore(semaphores), "stream": stream(server.sockets[0].getsockname()[1]),
    }
    for body in (nested, generator, event, condition, barrier, get, put, thread, executor, gathered, timed,
                 waited_for, group, child, future):
        bodies[body.__name__] = body()
    tasks = [asyncio.create_task(body, name=name) for name, body in bodies.items()]
    tasks.append(asyncio.create_task(other(tasks[0]), name="other"))
    await asyncio.sleep(0)
    ready()
    await asyncio.wait(tasks)
"""
ON_ASYNCIO = KINDS + "asyncio.run(main())"
ON_UVLOOP = KINDS + "import uvloop\nuvloop.run(main())"

SLEEPS = "waits for a timer (asyncio.sleep)"
WAITS = {
    "nested": SLEEPS,
    "generator": SLEEPS,
    "holder": SLEEPS,
    "lock": f"waits for an asyncio.Lock that holder holds, which {SLEEPS} (target.py:8)",
    "behind a manager": f"waits for an asyncio.Lock that manager holds, which {SLEEPS} (target.py:8)",
    "acquired by hand": "waits for an asyncio.Lock; its holder is not known",
    "waiter": "waits for a notice of an asyncio.Condition",
    "its lock": f"waits for an asyncio.Lock that by condition holds, which {SLEEPS} (target.py:8)",
    "semaphore 3": "waits for an asyncio.Semaphore that semaphore 1, semaphore 2 hold",
    "event": "waits for an asyncio.Event",
    "condition": "waits for a notice of an asyncio.Condition",
    "barrier": "waits for the other tasks of an asyncio.Barrier",
    "get": "waits for an item of an asyncio.Queue",
    "put": "waits for room in an asyncio.Queue",
    "thread": "waits for a thread (asyncio.to_thread)",
    "executor": "waits for a concurrent.futures.Future (of an executor, or of another loop)",
    "gathered": "waits for several tasks (asyncio.gather)",
    "other": f"waits for another task: holder, which {SLEEPS} (target.py:8)",
    "timed": "waits for an asyncio.Event, within a timeout",
    "group": "waits for the tasks of an asyncio.TaskGroup",
    "future": "waits for a future, in future",
    "Task-1": "waits for tasks or futures (asyncio.wait)",
}

DEADLOCK = """
async def take(name, first, second, mine, others):
    async with first:
        mine.set()
        await others.wait()
        async with second:
            pass
async def main():
    a, b, one, two = asyncio.Lock(), asyncio.Lock(), asyncio.Event(), asyncio.Event()
    tasks = [asyncio.create_task(take("one", a, b, one, two), name="one")]
    tasks.append(asyncio.create_task(take("two", b, a, two, one), name="two"))
    ready()
    await asyncio.wait(tasks)
asyncio.run(main())
"""
CIRCLE_WITH_A_TIMEOUT = DEADLOCK.replace("async with second:", "async with asyncio.timeout(10_000), second:")


def seen(pid: int) -> ProcessSight:
    sight = look_at(pid, with_tasks=True)
    assert isinstance(sight, ProcessSight), sight
    return sight


def tasks_of(sight: ProcessSight) -> dict[str, TaskSight]:
    return {task.name: task for task in sight.tasks or ()}


def words(sight: ProcessSight, name: str) -> str:
    tasks = sight.tasks or ()
    return wait_words([[task.name for task in tasks].index(name)], tasks)


def settled(pid: int) -> ProcessSight | None:
    """The program, once its child and its connection are there, too."""
    sight = seen(pid)
    tasks = tasks_of(sight)
    inner = {
        name: tasks[name].frames[0].qualname
        for name in ("child", "stream")
        if name in tasks and tasks[name].frames
    }
    is_there = inner.get("child") in CHILD_WAITS and inner.get("stream") == "StreamReader._wait_for_data"
    waits = [task.wait for task in tasks.values() if task.wait is not None and task.wait.target is not None]
    is_there &= all(wait.target.name for wait in waits)  # a child has none until it is its own program
    return sight if is_there and all(task.state is TaskState.WAITS for task in tasks.values()) else None


CHILD_WAITS = ("BaseSubprocessTransport._wait", "Process.wait")


def check_kinds(sight: ProcessSight, port: str) -> None:
    assert {name: words(sight, name) for name in WAITS} == WAITS
    tasks = tasks_of(sight)
    assert [frame.qualname for frame in tasks["nested"].frames] == ["sleep", "deep", "nested"]
    assert [frame.qualname for frame in tasks["generator"].frames] == ["sleep", "numbers", "generator"]
    assert [task.name for task in tasks.values() if task.is_main] == ["Task-1"]
    assert words(sight, "waited_for").endswith(", within a timeout")
    if (
        "uvloop" not in (Path(f"/proc/{sight.pid}/cwd") / "target.py").read_text()
    ):  # whose transports are in C
        assert words(sight, "stream") == f"waits for data of a stream (socket to 127.0.0.1:{port})"
        assert words(sight, "child").startswith("waits for a child process (child process cat (pid ")


def test_each_task_is_shown_with_what_it_waits_for(tmp_path: Path):
    with targets.running(ON_ASYNCIO, tmp_path) as program:
        check_kinds(targets.until(lambda: settled(program.pid)), program.said[-1])  # type: ignore[attr-defined]


@pytest.mark.skipif(importlib.util.find_spec("uvloop") is None, reason="needs uvloop")
def test_tasks_on_uvloop_are_the_same(tmp_path: Path):
    with targets.running(ON_UVLOOP, tmp_path) as program:
        check_kinds(targets.until(lambda: settled(program.pid)), program.said[-1])  # type: ignore[attr-defined]


@pytest.fixture(params=range(4))
def other(request: pytest.FixtureRequest) -> str:
    found = targets.other_pythons()
    if request.param >= len(found):
        pytest.skip("no more interpreters of other versions here")
    return found[request.param]


def test_another_version_is_read_by_this_one(tmp_path: Path, other: str):
    with targets.running(ON_ASYNCIO, tmp_path, python=other) as program:
        check_kinds(targets.until(lambda: settled(program.pid)), program.said[-1])  # type: ignore[attr-defined]


def deadlocked(pid: int) -> ProcessSight | None:
    sight = seen(pid)
    return sight if task_circles(sight.tasks or ()) else None


def test_a_circle_of_tasks_is_said_first(tmp_path: Path, loopcanary: Run, tree: Path):
    with targets.running(DEADLOCK, tmp_path) as program:
        targets.until(lambda: deadlocked(program.pid))
        ran = loopcanary("dump", "--tasks", str(program.pid))
        as_json = loopcanary("dump", "--tasks", "--all", "--format", "json", str(program.pid))
    assert ran.returncode == 0, ran.stderr
    told = " ".join(ran.stdout.split())
    assert "circle one waits for an asyncio.Lock that two holds (target.py:" in told
    assert told.index("circle") < told.index("3 tasks of asyncio") < told.index("main task")
    found = json.loads(as_json.stdout)
    [circle] = found["task_circles"]
    assert {found["tasks"][number]["name"] for number in circle} == {"one", "two"}
    page = (tree / "docs/how-to/dump.md").read_text(encoding="utf-8")
    assert {
        name
        for task in found["tasks"]
        for name in {**task, **(task["waits_for"] or {})}
        if f"`{name}`" not in page
    } == set()


def waits_with_a_timeout(pid: int) -> ProcessSight | None:
    sight = seen(pid)
    timed = [task for task in sight.tasks or () if task.wait is not None and task.wait.has_timeout]
    return sight if len(timed) == 2 and all(task.wait and task.wait.holders for task in timed) else None


def test_a_circle_that_ends_by_itself_is_no_deadlock(tmp_path: Path):
    with targets.running(CIRCLE_WITH_A_TIMEOUT, tmp_path) as program:
        sight = targets.until(lambda: waits_with_a_timeout(program.pid))
    assert task_circles(sight.tasks or ()) == []


def test_a_program_without_asyncio_says_so():
    source = "import time\nprint('ready', flush=True)\ntime.sleep(10_000)"
    with subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        program.stdout.readline()
        sight = seen(program.pid)
        program.kill()
    assert (sight.tasks, sight.notes) == (
        (),
        ("asyncio is not loaded in it, or was not found: no tasks are read",),
    )


PURE = """
import sys
sys.modules["_asyncio"] = None
import asyncio
print("ready", flush=True)
asyncio.run(asyncio.sleep(10_000))
"""


def test_tasks_in_pure_python_are_not_read_and_that_is_said():
    with subprocess.Popen([sys.executable, "-c", PURE], stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        program.stdout.readline()
        sight = seen(program.pid)
        program.kill()
    assert sight.tasks == ()
    assert sight.notes[0].startswith("its asyncio runs without the C tasks")


OF_ALL_SORTS = """
class Mine(asyncio.Task):
    pass
async def waits(event):
    await event.wait()
async def main():
    loop, event = asyncio.get_running_loop(), asyncio.Event()
    tasks = [Mine(waits(event), loop=loop, name="of a class"), asyncio.tasks._PyTask(waits(event), loop=loop)]
    if hasattr(asyncio, "eager_task_factory"):
        loop.set_task_factory(asyncio.eager_task_factory)
    tasks.append(asyncio.create_task(waits(event), name="eager"))
    beside = threading.Event()
    async def other():
        asyncio.current_task().set_name("of another loop")
        asyncio.get_running_loop().call_soon(beside.set)
        await asyncio.Event().wait()
    threading.Thread(target=lambda: asyncio.run(other()), daemon=True).start()
    beside.wait()
    await asyncio.sleep(0)
    ready()
    await asyncio.wait(tasks)
asyncio.run(main())
"""


def check_all_sorts(pid: int) -> None:
    sight = targets.until(lambda: found if len((found := seen(pid)).tasks or ()) == 4 else None)
    tasks = tasks_of(sight)
    assert set(tasks) == {"of a class", "eager", "of another loop", "Task-1"}
    assert {words(sight, name) for name in set(tasks) - {"Task-1"}} == {"waits for an asyncio.Event"}
    assert len({one.loop for one in tasks.values()}) == 2
    assert sight.notes == ("not read: 1 task of classes other than asyncio's C class",)


def test_tasks_of_all_sorts_are_found_and_those_in_python_counted(tmp_path: Path):
    with targets.running(OF_ALL_SORTS, tmp_path) as program:
        check_all_sorts(program.pid)
    for python in targets.other_pythons():
        with targets.running(OF_ALL_SORTS, tmp_path, python=python) as program:
            check_all_sorts(program.pid)


RUNNING = """
async def restless():
    while True:
        await asyncio.sleep(0)
async def main():
    tasks = [asyncio.create_task(restless()) for _ in range(50)]
    tasks.append(asyncio.create_task(asyncio.Event().wait(), name="calm"))
    await asyncio.sleep(0)
    ready()
    await asyncio.wait(tasks)
asyncio.run(main())
"""


def test_tasks_that_go_on_are_moving_and_others_are_read(tmp_path: Path):
    with targets.running(RUNNING, tmp_path) as program:
        sights = [seen(program.pid) for _ in range(20)]
    for sight in sights:
        tasks = tasks_of(sight)
        assert len(tasks) == 52
        assert words(sight, "calm") == "waits for an asyncio.Event"
        restless = [task for name, task in tasks.items() if name not in ("calm", "Task-1")]
        assert not any(task.state is TaskState.UNREADABLE for task in restless)
        assert not task_circles(sight.tasks or ())


BLOCKED = """
async def main():
    event, lock = asyncio.Event(), asyncio.Lock()
    await lock.acquire()
    tasks = {name: asyncio.create_task(body, name=name) for name, body in {
        "on the event": event.wait(), "on the lock": lock.acquire(), "cancelled": asyncio.sleep(10_000),
        "gathered": asyncio.wait_for(asyncio.gather(event.wait(), event.wait()), 10_000),
        "waits": asyncio.Event().wait(),
    }.items()}
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    event.set()
    lock.release()
    tasks["cancelled"].cancel()
    ready()
    time.sleep(10_000)
asyncio.run(main())
"""


def test_a_task_that_a_blocked_loop_has_not_woken_is_ready(tmp_path: Path):
    for python in (sys.executable, *targets.other_pythons()):
        with targets.running(BLOCKED, tmp_path, python=python) as program:
            check_blocked(tasks_of(seen(program.pid)))


def check_blocked(tasks: dict[str, TaskSight]) -> None:
    states = {name: tasks[name].state for name in ("on the event", "on the lock", "cancelled", "waits")}
    assert states == {**dict.fromkeys(states, TaskState.READY), "waits": TaskState.WAITS}
    assert tasks["gathered"].state is TaskState.WAITS  # until both of its tasks have ended
    assert [task.wait for task in tasks.values() if task.state is TaskState.READY] == [None] * 5


# ---- what is said of them -------------------------------------------------------------------------


def task(name: str = "", **facts: Any) -> TaskSight:
    return TaskSight(**{"name": name, "is_main": False, "loop": 0, "state": TaskState.WAITS, **facts})


def on(**facts: Any) -> TaskWait:
    return TaskWait(**{"what": "an asyncio.Lock", **facts})


@pytest.mark.parametrize(
    ("waits", "circles"),
    [
        pytest.param([on(holders=(1,)), on(holders=(0,))], [(0, 1)], id="each waits for the other's lock"),
        pytest.param([on(holders=(1,)), on(what="x", task=0)], [(0, 1)], id="one waits for the other's end"),
        pytest.param([on(holders=(0,))], [], id="one waits for its own lock"),
        pytest.param(
            [on(holders=(1,)), on(holders=(0,), has_timeout=True)], [], id="one wait ends by itself"
        ),
        pytest.param([on(holders=(1,)), on(holders=(0, 1))], [], id="a lock with two holders is not certain"),
        pytest.param(
            [on(holders=(1,)), on(what="an asyncio.Semaphore", holders=(0,))],
            [],
            id="others may release a semaphore",
        ),
        pytest.param([on(holders=(1,)), on(what="an asyncio.Event")], [], id="a chain"),
        pytest.param([on(holders=(1,)), None], [], id="the holder goes on"),
    ],
)
def test_deadlocks_are_circles_that_are_certain(waits: list[TaskWait | None], circles: list[tuple[int, ...]]):
    assert task_circles([task(str(at), wait=wait) for at, wait in enumerate(waits)]) == circles


FRAME = Frame(qualname="", file="x.py", line=1, end_line=1, column=0, end_column=0, first_line=1)


def read(address: int, *awaits: tuple[str, int, tuple[tuple[int, str], ...]]) -> TaskRead:
    """A task with these awaits: function, first argument, what it holds."""
    names = dict.fromkeys(("name", "loop_type", "callback", "future_type", "future_callback", "end_type"), "")
    return TaskRead(
        address=address,
        loop=1,
        state=2,
        future=9,
        cut=False,
        awaits=tuple(
            TaskAwait(frame=replace(FRAME, qualname=qualname), first=first, held=held)
            for qualname, first, held in awaits
        ),
        **names,
    )


def test_a_task_that_enters_a_block_does_not_hold_its_lock():
    lock = 77
    held = ((lock, "Lock.__aexit__"),)
    enters = ("_ContextManagerMixin.__aenter__", lock, ())
    tasks = [read(1, ("work", 5, held)), read(2, ("work", 5, held), enters)]
    assert holders(tasks) == {lock: (1,)}


def test_more_groups_than_are_shown_are_counted():
    waits = tuple(task(str(at), wait=on(what=f"thing {at}")) for at in range(70))
    process = ProcessSight(
        pid=1,
        command="x",
        executable="x",
        python="3.12.1",
        age_ns=None,
        taken_wall_ns=0,
        threads=(),
        tasks=waits,
    )
    told = markdown.render(dump_document(process, everything=False))
    assert "and 6 tasks in 6 more groups" in told


NO_HOLDERS = """
import asyncio

async def waits_in(full, empty):
    async with full:
        await empty.wait()

async def takes_back(lock):
    async with lock:
        lock.release()
        try:
            await asyncio.sleep(0)
        finally:
            await lock.acquire()

async def main():
    shared, taken = asyncio.Lock(), asyncio.Lock()
    full, empty = asyncio.Condition(shared), asyncio.Condition(shared)
    one = asyncio.create_task(waits_in(full, empty), name="notified")
    two = asyncio.create_task(takes_back(taken), name="takes back")
    await asyncio.sleep(0)
    await taken.acquire()
    await asyncio.sleep(0)
    other = asyncio.create_task(taken.acquire(), name="behind")
    await asyncio.sleep(0)
    print("ready", flush=True)
    await asyncio.sleep(10_000)
asyncio.run(main())
"""


def test_who_let_a_lock_go_does_not_hold_it(tmp_path: Path):
    with targets.running(NO_HOLDERS, tmp_path) as program:
        sight = targets.until(lambda: all_at_rest(program.pid))
    tasks = {task.name: task for task in sight.tasks or ()}
    assert tasks["behind"].wait is not None
    assert tasks["behind"].wait.holders == ()
    assert task_circles(sight.tasks or ()) == []


def all_at_rest(pid: int) -> ProcessSight | None:
    sight = seen(pid)
    return sight if all(task.state is TaskState.WAITS for task in sight.tasks or ()) else None
