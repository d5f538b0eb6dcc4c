"""Deadlocks and leaks of anyio, as below FastAPI and httpx; those with `trio` in their names on trio."""

from __future__ import annotations

import asyncio
import sys

import anyio

from zoo.deadlocks.catalogue import asked, deadlock, leak


class Account:
    def __init__(self):
        self.lock = anyio.Lock()

    async def pay(self, other):
        async with self.lock:
            await anyio.sleep(0.1)
            async with other.lock:
                pass


async def transfers():
    alice, bob = Account(), Account()
    async with anyio.create_task_group() as group:
        group.start_soon(alice.pay, bob, name="alice to bob")
        group.start_soon(bob.pay, alice, name="bob to alice")


TRANSFERS = {"alice to bob": "Account.lock", "bob to alice": "Account.lock"}


@deadlock(TRANSFERS)
async def anyio_transfers():
    """Two accounts, and a transfer from each to the other."""
    await transfers()


@deadlock(dict.fromkeys(TRANSFERS, "Lock"))
async def anyio_transfers_on_trio():
    """The same on trio."""
    await transfers()


class Library:
    def __init__(self):
        self.lock = anyio.Lock()

    async def refresh(self):
        async with self.lock, anyio.create_task_group() as group:
            group.start_soon(self.load, name="load")

    async def load(self):
        await anyio.sleep(0.1)
        async with self.lock:
            pass


async def refreshed():
    async with anyio.create_task_group() as group:
        group.start_soon(Library().refresh, name="refresh")


REFRESH = {"refresh": "the task load", "load": "Library.lock"}


@deadlock(REFRESH)
async def anyio_group_in_the_lock():
    """A task group in the lock that its task needs."""
    await refreshed()


@deadlock({"refresh": "the task load", "load": "Lock"})
async def anyio_group_in_the_lock_on_trio():
    """The same on trio."""
    await refreshed()


@deadlock({"main": "the task server", "server": "Lock"})
async def anyio_start():
    """A server that is started in a lock needs it before it says that it has started."""
    lock = anyio.Lock()

    async def server(*, task_status):
        async with lock:
            task_status.started()

    async def main(group):
        async with lock:
            await group.start(server, name="server")

    async with anyio.create_task_group() as group:
        group.start_soon(main, group, name="main")


@deadlock({"export": "Semaphore", "backup": "CapacityLimiter"})
async def anyio_limiter_and_semaphore():
    """A limit for disks and one for connections, in both orders."""

    class Limits:
        def __init__(self):
            self.disks, self.connections = anyio.CapacityLimiter(1), anyio.Semaphore(1)

        async def export(self):
            async with self.disks:
                await anyio.sleep(0.1)
                async with self.connections:
                    pass

        async def backup(self):
            async with self.connections:
                await anyio.sleep(0.1)
                async with self.disks:
                    pass

    limits = Limits()
    async with anyio.create_task_group() as group:
        group.start_soon(limits.export, name="export")
        group.start_soon(limits.backup, name="backup")


@deadlock(
    {f"crawl {depth}": f"the task crawl {depth + 1}" for depth in range(2)} | {"crawl 2": "CapacityLimiter"}
)
async def anyio_nested_in_a_limiter():
    """A crawler keeps its place while it waits for the pages below: three levels, two places."""
    places = anyio.CapacityLimiter(2)

    async def crawl(depth):
        async with places:
            await anyio.sleep(0.1)
            async with anyio.create_task_group() as group:
                group.start_soon(crawl, depth + 1, name=f"crawl {depth + 1}")

    async with anyio.create_task_group() as group:
        group.start_soon(crawl, 0, name="crawl 0")


@deadlock({"ask": "Lock 'log'", "tell": "Lock"})
async def anyio_condition():
    """A condition and a lock for the log, in both orders."""
    news, log = anyio.Condition(), anyio.Lock()

    async def ask():
        async with news:
            await anyio.sleep(0.1)
            async with log:
                pass

    async def tell():
        async with log:
            await anyio.sleep(0.1)
            async with news:
                news.notify_all()

    async with anyio.create_task_group() as group:
        group.start_soon(ask, name="ask")
        group.start_soon(tell, name="tell")


@deadlock({"endpoint": "Lock", "worker": "Lock"})
async def anyio_and_asyncio():
    """A lock of anyio and one of asyncio, in both orders."""
    requests, jobs = anyio.Lock(), asyncio.Lock()

    async def endpoint():
        async with requests:
            await anyio.sleep(0.1)
            async with jobs:
                pass

    async def worker():
        async with jobs:
            await anyio.sleep(0.1)
            async with requests:
                pass

    async with anyio.create_task_group() as group:
        group.start_soon(endpoint, name="endpoint")
        group.start_soon(worker, name="worker")


class Settings:
    def __init__(self):
        self.lock, self.permits = anyio.Lock(), anyio.Semaphore(1)

    async def load(self):
        await self.lock.acquire()
        try:
            int("no number")
            self.lock.release()
        except ValueError:
            print("not loaded")

    async def read(self):
        async with self.lock:
            pass

    async def try_load(self):
        self.lock.acquire_nowait()
        await anyio.sleep(0.1)

    async def fetch(self):
        await self.permits.acquire()
        with anyio.move_on_after(0.1):
            await anyio.sleep(60)
            self.permits.release()


async def one_after_the_other(first, second):
    async with anyio.create_task_group() as group:
        group.start_soon(first, name="first")
        await anyio.sleep(0.5)
        group.start_soon(second, name="second")


@leak("Settings.lock", by="first")
async def anyio_raises():
    """A task fails between acquire() and release()."""
    settings = Settings()
    await one_after_the_other(settings.load, settings.read)


@leak("Settings.lock", by="first")
async def anyio_nowait():
    """A lock that was taken by acquire_nowait() is forgotten."""
    settings = Settings()
    await one_after_the_other(settings.try_load, settings.read)


@leak("Settings.permits", by="first")
async def anyio_permit_times_out():
    """A permit is lost when its task runs out of time."""
    settings = Settings()
    await one_after_the_other(settings.fetch, settings.fetch)


if __name__ == "__main__":
    anyio.run(asked(), backend="trio" if "trio" in sys.argv[1] else "asyncio")
