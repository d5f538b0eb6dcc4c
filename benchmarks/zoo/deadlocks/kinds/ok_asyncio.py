"""Programs of asyncio that look like a deadlock or a leak, and are none: they go on after 40 seconds."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time

from zoo.deadlocks.catalogue import asked, control

LONG_S = 40
"""Longer than it takes until any report would come."""


@control
async def a_busy_lock():
    """Twenty tasks share a lock that is held all the time."""
    lock = asyncio.Lock()

    async def works():
        while True:
            async with lock:
                await asyncio.sleep(0.5)

    await asyncio.gather(*(works() for _ in range(20)))


@control
async def a_slow_holder():
    """A migration has the lock for 40 seconds, and all requests wait."""
    lock = asyncio.Lock()

    async def migration():
        await lock.acquire()
        try:
            await asyncio.sleep(LONG_S)
        finally:
            lock.release()

    async def request():
        async with lock:
            pass

    await asyncio.gather(migration(), *(request() for _ in range(5)))


@control
async def a_thread_for_the_holder():
    """The holder of a lock waits for a thread."""
    lock = asyncio.Lock()

    async def works():
        async with lock:
            await asyncio.to_thread(time.sleep, LONG_S)

    await asyncio.gather(works(), works())


@control
async def a_child_of_the_holder():
    """The holder of a lock waits for another process."""
    lock = asyncio.Lock()

    async def works():
        async with lock:
            child = await asyncio.create_subprocess_exec(
                sys.executable, "-Sc", f"import time; time.sleep({LONG_S})"
            )
            await child.wait()

    await asyncio.gather(works(), works())


@control
async def a_server_for_the_holder():
    """The holder of a lock waits for a server's answer."""
    lock = asyncio.Lock()

    async def answers(_reader, writer):
        await asyncio.sleep(LONG_S)
        writer.close()

    server = await asyncio.start_server(answers, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]

    async def asks():
        async with lock:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            await reader.read()
            writer.close()

    await asyncio.gather(asks(), asks())


@control
async def workers_without_work():
    """Workers wait for work that comes much later, one of them in a lock."""
    queue, lock = asyncio.Queue(), asyncio.Lock()

    async def worker():
        while True:
            async with lock:
                await queue.get()

    asyncio.get_running_loop().call_later(LONG_S, queue.put_nowait, "work")
    await asyncio.gather(worker(), worker(), asyncio.Event().wait())


@control
async def a_condition_without_news():
    """Consumers wait for a condition that gets news much later."""
    condition = asyncio.Condition()

    async def waits():
        async with condition:
            await condition.wait()

    async def tells():
        await asyncio.sleep(LONG_S)
        async with condition:
            condition.notify_all()

    await asyncio.gather(waits(), waits(), tells())


@control
async def a_rate_limiter():
    """A permit is given back by a timer."""
    permits = asyncio.Semaphore(1)

    async def asks():
        await permits.acquire()
        asyncio.get_running_loop().call_later(LONG_S, permits.release)

    await asyncio.gather(asks(), asks())


@control
async def a_bounded_spawn():
    """A permit is given back when the job of another task is done."""
    permits = asyncio.Semaphore(2)
    jobs = set()
    for _ in range(4):
        await permits.acquire()
        jobs.add(job := asyncio.create_task(asyncio.sleep(LONG_S)))
        job.add_done_callback(lambda _: permits.release())


class Gate:
    def __init__(self):
        self.lock = asyncio.Lock()

    async def close(self):
        await self.lock.acquire()

    async def open(self):
        await asyncio.sleep(LONG_S)
        self.lock.release()

    async def passes(self):
        async with self.lock:
            pass


@control
async def a_gate():
    """A lock as a gate: closed by one task, opened by another."""
    gate = Gate()
    await gate.close()
    await asyncio.gather(gate.open(), gate.passes())


@control
async def a_gate_closed_by_a_task_that_ended():
    """The same; the task that closed it has ended."""
    gate = Gate()
    await asyncio.create_task(gate.close())
    await asyncio.gather(gate.open(), gate.passes())


@control
async def a_lock_within_a_time():
    """A lock is acquired by wait_for, which on 3.11 starts a task that ends, and then used for long."""
    lock = asyncio.Lock()

    async def works():
        await asyncio.wait_for(lock.acquire(), 600)
        try:
            await asyncio.sleep(LONG_S)
        finally:
            lock.release()

    await asyncio.gather(works(), works())


@control
async def a_lock_that_nobody_wants():
    """A lock marks that something was done once: no task waits for it."""
    done = asyncio.Lock()

    async def once():
        if not done.locked():
            await done.acquire()

    await asyncio.create_task(once())
    await asyncio.sleep(2 * LONG_S)


@control
async def gives_up_and_tries_again():
    """Two locks in both orders; who does not get the second one in a second lets go, and tries again."""
    one, other = asyncio.Lock(), asyncio.Lock()

    async def works(first, second, patience):
        while True:
            async with first:
                await asyncio.sleep(0.1)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(patience), second:
                        await asyncio.sleep(0.1)
            await asyncio.sleep(0.1)

    await asyncio.gather(works(one, other, 1), works(other, one, 1.5))


@control
async def sorted_transfers():
    """Transfers in both directions take the locks of accounts in the same order."""
    locks = [asyncio.Lock(), asyncio.Lock()]

    async def transfers(source, target):
        while True:
            first, second = sorted((source, target))
            async with locks[first]:
                await asyncio.sleep(0.2)
                async with locks[second]:
                    await asyncio.sleep(0.2)

    await asyncio.gather(*(transfers(number % 2, 1 - number % 2) for number in range(6)))


@control
async def a_permit_of_another_task():
    """Two tasks seem to wait for each other, and a third one has a permit that frees both."""
    permits, lock = asyncio.Semaphore(2), asyncio.Lock()

    async def slow():
        await permits.acquire()
        await asyncio.sleep(LONG_S)
        permits.release()

    async def moves(first, second):
        async with first:
            await asyncio.sleep(0.1)
            async with second:
                pass

    await asyncio.gather(slow(), moves(permits, lock), moves(lock, permits))


@control
async def a_child_that_needs_another_lock():
    """A parent waits in a lock for a child that waits for a slow task's lock."""
    cache, disk = asyncio.Lock(), asyncio.Lock()

    async def backup():
        async with disk:
            await asyncio.sleep(LONG_S)

    async def child():
        async with disk:
            pass

    async def parent():
        async with cache:
            await asyncio.create_task(child())

    await asyncio.gather(backup(), parent(), parent())


@control
async def cancelled_by_another():
    """A parent waits in a lock for a child that needs it, until a supervisor cancels the child."""
    lock = asyncio.Lock()

    async def child():
        async with lock:
            pass

    async def parent(children):
        async with lock:
            children.append(asyncio.create_task(child()))
            await asyncio.sleep(1)
            children[0].cancel()
            await asyncio.wait(children)

    while True:
        await parent([])


if __name__ == "__main__":
    asyncio.run(asked()())
