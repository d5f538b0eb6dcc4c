"""Waits that nothing can end any more, and waits of which that cannot be said."""

from __future__ import annotations

import asyncio
import atexit
import collections
import contextlib
import contextvars
import functools
import inspect
import signal
import socket
import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest

from loopcanary.probes import ImportWatch
from loopcanary.tracers.locks import watch
from loopcanary.tracers.locks.lost import _is_known, _length
from loopcanary.tracers.locks.tracer import LockTracer

from .stories import Desk, reported_of_main


async def works(jobs, done=None):
    while True:
        job = await jobs.get()
        if job is None:
            raise ValueError
        jobs.task_done()
        if done is not None:
            done.set()


async def parks():
    await asyncio.Event().wait()


# ---- nothing can end them ------------------------------------------------------------------------


async def joins_when_its_workers_have_failed():
    jobs = asyncio.Queue()
    workers = [asyncio.create_task(works(jobs), name=f"worker {n}") for n in range(2)]
    for job in (None, None, 1):
        jobs.put_nowait(job)
    await jobs.join()
    del workers


async def consumes_what_nobody_produces():
    jobs = asyncio.Queue()
    await works(jobs)


async def gathers_consumers():
    jobs = asyncio.Queue()
    await asyncio.gather(*(asyncio.create_task(works(jobs), name=f"worker {n}") for n in range(2)))


async def has_consumers_in_a_group():
    jobs = asyncio.Queue()
    async with asyncio.TaskGroup() as group:
        for n in range(2):
            group.create_task(works(jobs), name=f"worker {n}")


async def gathers_many_consumers():
    """More objects than the collector lets live before it looks at them."""
    jobs = asyncio.Queue()
    await asyncio.gather(*(asyncio.create_task(works(jobs)) for _ in range(150)))


class Unhashable(type):  # noqa: PLW1641 - that is what it is
    """As a metaclass, of classes that cannot be keys."""

    def __eq__(cls, other):
        raise AssertionError


async def knows_odd_classes():
    odd = Unhashable("Odd", (), {})(), eval("type('Nowhere', (), {})()", {})
    await consumes_what_nobody_produces()
    del odd


async def consumes_in_a_lock():
    jobs, lock = asyncio.Queue(), asyncio.Lock()

    async def takes():
        async with lock:
            await jobs.get()

    async with asyncio.TaskGroup() as group:
        for n in range(2):
            group.create_task(takes(), name=f"worker {n}")


async def puts_into_a_full_queue():
    jobs = asyncio.Queue(1)

    async def fills():
        while True:
            await jobs.put(1)

    await asyncio.create_task(fills(), name="fills")


async def waits_for_news_that_nobody_has():
    condition = asyncio.Condition()
    async with condition:
        await condition.wait()


class Service:
    def __init__(self):
        self.jobs, self.is_ready = asyncio.Queue(), asyncio.Event()
        self.reply = asyncio.get_running_loop().create_future()

    async def starts(self):
        raise ValueError(self)

    async def serves(self):
        starting = asyncio.create_task(self.starts(), name="starts")
        await self.is_ready.wait()
        del starting

    async def asks(self):
        starting = asyncio.create_task(self.starts(), name="starts")
        await self.reply
        del starting


async def waits_for_the_event_of_a_task_that_has_failed():
    await Service().serves()


async def waits_for_the_reply_of_a_task_that_has_failed():
    await Service().asks()


async def beside_a_busy_service():
    elsewhere.append(asyncio.create_task(asyncio.sleep(1_000)))
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    async with server:
        await consumes_what_nobody_produces()


@pytest.mark.parametrize(
    ("story", "waits"),
    [
        (joins_when_its_workers_have_failed, ["task_done() of Queue 'jobs'"]),
        (consumes_what_nobody_produces, ["an item in Queue 'jobs'"]),
        (gathers_consumers, ["an item in Queue 'jobs'"] * 2),
        (gathers_many_consumers, ["an item in Queue 'jobs'"] * 20),
        (knows_odd_classes, ["an item in Queue 'jobs'"]),
        (has_consumers_in_a_group, ["an item in Queue 'jobs'"] * 2),
        (consumes_in_a_lock, ["an item in Queue 'jobs'"]),
        (puts_into_a_full_queue, ["room in Queue 'jobs'"]),
        (waits_for_news_that_nobody_has, ["notify() of Condition 'condition'"]),
        (waits_for_the_event_of_a_task_that_has_failed, ["set() of Event 'Service.is_ready'"]),
        (waits_for_the_reply_of_a_task_that_has_failed, ["the result of Future 'Service.reply'"]),
        (beside_a_busy_service, ["an item in Queue 'jobs'"]),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_a_wait_that_nothing_can_end_is_reported_once(story, waits):
    (issue,) = reported_of_main(story)
    assert (issue.kind.value, issue.is_lost) == ("deadlock", True)
    assert [wait.waits_for for wait in issue.cycle] == waits
    assert all(wait.frames and wait.frames[0].in_app for wait in issue.cycle)
    assert issue.duration_ns >= 30e9
    elsewhere.clear()


def test_tasks_that_failed_unnoticed_are_named():
    (issue,) = reported_of_main(waits_for_the_event_of_a_task_that_has_failed)
    assert issue.advice.endswith("starts (ValueError)")


# ---- something may end them, or it is on purpose -------------------------------------------------

elsewhere = []
JOBS = asyncio.Queue()
LOCAL = threading.local()
VARIABLE = contextvars.ContextVar("jobs")


async def serves_for_ever_by_an_event():
    await parks()


async def serves_for_ever_by_a_future():
    await asyncio.get_running_loop().create_future()


async def serves_until_its_own_event():
    service = Service()
    async with await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0):
        await service.is_ready.wait()


async def serves_until_an_event_that_others_wait_for():
    stop = asyncio.Event()
    await asyncio.gather(stop.wait(), stop.wait())


async def serves_until_an_event_that_a_job_knew():
    service = Service()

    async def migrates(service):
        await asyncio.sleep(40)
        return service is None

    job = asyncio.create_task(migrates(service))
    await service.is_ready.wait()
    del job


async def sleeps_for_ever_by_a_queue():
    await asyncio.Queue().get()


async def of_the_module():
    await works(JOBS)


async def by_a_timer():
    jobs = asyncio.Queue()
    asyncio.get_running_loop().call_later(190, functools.partial(jobs.put_nowait, 1))
    await works(jobs)


async def by_a_later_turn():
    jobs, loop = asyncio.Queue(), asyncio.get_running_loop()

    def again(count):
        if count:
            loop.call_later(5, again, count - 1)
        else:
            jobs.put_nowait(1)

    again(38)
    await works(jobs)


async def by_the_protocols_of_a_server():
    jobs = asyncio.Queue()

    class Puts(asyncio.Protocol):
        def data_received(self, data):
            jobs.put_nowait(data)

    async with await asyncio.get_running_loop().create_server(Puts, "127.0.0.1", 0):
        await works(jobs)


async def by_the_clients_of_a_server():
    jobs = asyncio.Queue()

    async def puts(_, writer):
        jobs.put_nowait(1)
        writer.close()

    async with await asyncio.start_server(puts, "127.0.0.1", 0):
        await works(jobs)


async def by_an_open_connection():
    jobs = asyncio.Queue()
    one, other = socket.socketpair()

    async def reads(reader):
        jobs.put_nowait(await reader.read())

    reader, writer = await asyncio.open_connection(sock=one)
    reading = asyncio.create_task(reads(reader))
    try:
        await works(jobs)
    finally:
        other.close()
        writer.close()
        await reading


async def by_a_reader_of_a_file():
    jobs = asyncio.Queue()
    one, other = socket.socketpair()
    with one, other:
        asyncio.get_running_loop().add_reader(one, jobs.put_nowait, 1)
        await works(jobs)


async def by_a_thread():
    jobs, loop, may_end = asyncio.Queue(), asyncio.get_running_loop(), threading.Event()

    def puts(jobs):
        may_end.wait()
        loop.call_soon_threadsafe(jobs.put_nowait, 1)  # it runs: its tasks are about to end

    thread = threading.Thread(target=puts, args=(jobs,), daemon=True)
    thread.start()
    try:
        await works(jobs)
    finally:
        may_end.set()
        thread.join()


async def by_a_threads_local():
    LOCAL.jobs = asyncio.Queue()
    await works(LOCAL.jobs)


async def by_an_executor():
    jobs, may_end, loop = asyncio.Queue(), threading.Event(), asyncio.get_running_loop()

    async def waits(pool):
        await loop.run_in_executor(pool, may_end.wait)
        jobs.put_nowait(1)

    with ThreadPoolExecutor() as pool:
        try:
            await asyncio.gather(waits(pool), works(jobs))
        finally:
            may_end.set()


async def by_a_signal():
    jobs, loop = asyncio.Queue(), asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGUSR2, jobs.put_nowait, 1)
    try:
        await works(jobs)
    finally:
        loop.remove_signal_handler(signal.SIGUSR2)


async def by_a_signal_of_python():
    jobs = asyncio.Queue()
    before = signal.signal(signal.SIGUSR2, lambda *_: jobs.put_nowait(1))
    try:
        await works(jobs)
    finally:
        signal.signal(signal.SIGUSR2, before)


async def by_an_exit_handler():
    jobs = asyncio.Queue()
    atexit.register(jobs.put_nowait, 1)
    try:
        await works(jobs)
    finally:
        atexit.unregister(jobs.put_nowait)


async def by_a_generator():
    jobs = asyncio.Queue()

    def feeds(jobs):
        while True:
            jobs.put_nowait((yield))

    generator = feeds(jobs)
    next(generator)
    elsewhere.append(generator)
    del generator, feeds
    await works(jobs)


async def by_a_coroutine_that_has_not_begun():
    jobs = asyncio.Queue()
    elsewhere.append(jobs.put(1))
    try:
        await works(jobs)
    finally:
        elsewhere[-1].close()


async def by_a_context():
    jobs = asyncio.Queue()
    context = contextvars.copy_context()
    context.run(VARIABLE.set, jobs)
    elsewhere.append(context)
    del context
    await works(jobs)


async def by_a_weak_set():
    jobs = asyncio.Queue()
    elsewhere.append(weakref.WeakSet([jobs]))
    await works(jobs)


async def by_a_weak_reference_to_what_has_it():
    service = Service()
    elsewhere.append(weakref.ref(service))
    await works(service.jobs)


class Unasked:
    """An object that nobody may ask for anything, before asyncio does in the end."""

    is_over = False

    def __init__(self):
        self.jobs = asyncio.Queue()

    def __call__(self, *_):
        pass

    def __getattr__(self, name):
        raise AttributeError(name) if self.is_over else AssertionError(name)


async def by_a_weak_proxy():
    one = Unasked()
    asyncio.get_running_loop().call_later(199, setattr, Unasked, "is_over", True)
    elsewhere.append(weakref.proxy(one))
    asyncio.current_task().add_done_callback(one)
    await works(one.jobs)


async def by_the_method_of_an_object():
    jobs = asyncio.Queue()
    elsewhere.append(iter(lambda: jobs.put_nowait(1), None))
    await works(jobs)


class Known(socket.socket):
    """Its memory may be known to a library in C."""


async def by_a_library_in_c():
    with Known() as known:
        known.jobs = asyncio.Queue()
        await works(known.jobs)


async def by_a_task_that_may_go_on():
    jobs = asyncio.Queue()

    async def produces():
        await asyncio.sleep(190)
        await jobs.put(1)

    await asyncio.gather(produces(), works(jobs))


async def by_a_sibling_that_may_fail():
    jobs = asyncio.Queue()
    async with asyncio.TaskGroup() as group:
        group.create_task(asyncio.sleep(190))
        group.create_task(works(jobs))


async def by_a_timeout():
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(190):
            await consumes_what_nobody_produces()


async def by_a_timeout_of_wait_for():
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(consumes_what_nobody_produces(), 190)


async def by_a_timeout_of_wait():
    await asyncio.wait([asyncio.create_task(consumes_what_nobody_produces())], timeout=190)


async def by_who_may_cancel_the_task():
    elsewhere.append(asyncio.current_task())
    await consumes_what_nobody_produces()


async def by_who_may_cancel_a_child():
    child = asyncio.create_task(consumes_what_nobody_produces())
    elsewhere.append(child)
    await child


async def by_who_may_cancel_it_at_a_time():
    task = asyncio.current_task()
    asyncio.get_running_loop().call_later(190, task.cancel)
    await consumes_what_nobody_produces()


async def by_a_large_list():
    """What is not looked into counts as living."""
    jobs = asyncio.Queue()
    many = [[] for _ in range(10_000)]
    many.append(jobs)
    await works(jobs)


@pytest.mark.parametrize(
    "kind", [collections.OrderedDict, collections.Counter, collections.deque, type("Own", (dict,), {})]
)
def test_what_is_large_is_not_looked_into(kind):
    assert _length(kind(zip(range(1_000), range(1_000), strict=True))) == 1_000
    assert not _is_known(type(functools.lru_cache(10_000)(len)))


class Shop:
    def __init__(self):
        self.jobs = asyncio.Queue()


async def by_the_dict_of_an_object():
    service = Shop()
    elsewhere.append(vars(service))
    await works(service.jobs)


async def by_a_done_callback_of_a_living_task():
    jobs = asyncio.Queue()
    elsewhere.append(asyncio.create_task(parks()))
    elsewhere[-1].add_done_callback(lambda _: jobs.put_nowait(1))
    await works(jobs)


QUIET = [
    one
    for name, one in list(globals().items())
    if name.startswith(("by_", "serves_", "sleeps_", "of_")) and inspect.iscoroutinefunction(one)
]
if sys.version_info[:2] == (3, 13):
    QUIET.remove(by_the_dict_of_an_object)  # an instance of 3.13 does not show its dict


@pytest.mark.parametrize("story", QUIET)
def test_what_something_may_end_is_not_reported(story):
    try:
        assert reported_of_main(story) == []
    finally:
        elsewhere.clear()


async def serves_idle_connections():
    async def sends(jobs, writer):
        while True:
            writer.write(await jobs.get())

    async def answers(reader, writer):
        jobs = asyncio.Queue()
        sending = asyncio.create_task(sends(jobs, writer))
        try:
            while line := await reader.readline():
                jobs.put_nowait(line)
        finally:
            sending.cancel()
            writer.close()

    async with await asyncio.start_server(answers, "127.0.0.1", 0) as server:
        address = server.sockets[0].getsockname()
        clients = [await asyncio.open_connection(*address) for _ in range(100)]
        try:
            await server.serve_forever()
        finally:
            for _, writer in clients:
                writer.close()


def test_a_service_with_idle_connections_is_quiet_for_an_hour():
    assert reported_of_main(serves_idle_connections, 3_600) == []


class Stops(Desk):
    """Stops its loop when something is reported."""

    def report(self, issue):
        asyncio.get_running_loop().stop()
        return super().report(issue)


def run_by_uvloop(uvloop, story):
    uvloop.run(story())


def run_by_a_loop_of_uvloop(uvloop, story):
    loop = uvloop.new_event_loop()
    try:
        loop.run_until_complete(story())
    finally:
        for task in asyncio.all_tasks(loop):
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            loop.run_until_complete(asyncio.sleep(0))
        loop.close()


@pytest.mark.parametrize("run", [run_by_uvloop, run_by_a_loop_of_uvloop])
@pytest.mark.parametrize("story", [consumes_what_nobody_produces, joins_when_its_workers_have_failed])
def test_uvloop_too(run, story, monkeypatch):
    uvloop = pytest.importorskip("uvloop")
    monkeypatch.setattr(watch, "IDLE_S", 0.01)
    desk = Stops()
    tracer = LockTracer(lambda _: True, ImportWatch)
    tracer.init(desk)
    tracer.start()
    try:
        with contextlib.suppress(RuntimeError):  # it was stopped before the task was complete
            run(uvloop, story)
    finally:
        tracer.stop()
    assert desk.errors == []
    assert [(issue.is_lost, issue.loop) for issue in desk.issues] == [(True, "uvloop")]
