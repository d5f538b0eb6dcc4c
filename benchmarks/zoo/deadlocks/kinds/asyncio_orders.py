"""Tasks of asyncio that take locks in different orders."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import threading
from collections import defaultdict

from zoo.deadlocks.catalogue import asked, deadlock


async def all_of(**tasks):
    """Tasks with these names, until they end."""
    async with asyncio.TaskGroup() as group:
        for name, coroutine in tasks.items():
            group.create_task(coroutine, name=name)


class Account:
    def __init__(self, balance):
        self.lock = asyncio.Lock()
        self.balance = balance

    async def pay(self, other, amount):
        async with self.lock:
            await asyncio.sleep(0.1)  # asks whether it is fraud
            async with other.lock:
                self.balance -= amount
                other.balance += amount


@deadlock({"alice_to_bob": "Account.lock", "bob_to_alice": "Account.lock"})
async def two_transfers():
    """Two accounts, and a transfer from each to the other."""
    alice, bob = Account(100), Account(100)
    await all_of(alice_to_bob=alice.pay(bob, 10), bob_to_alice=bob.pay(alice, 20))


class Shop:
    def __init__(self):
        self.orders, self.stock, self.prices = asyncio.Lock(), asyncio.Lock(), asyncio.Lock()

    async def sell(self):
        async with self.orders:
            await asyncio.sleep(0.1)
            async with self.stock:
                pass

    async def refill(self):
        async with self.stock:
            await asyncio.sleep(0.1)
            async with self.prices:
                pass

    async def reprice(self):
        async with self.prices:
            await asyncio.sleep(0.1)
            async with self.orders:
                pass


@deadlock({"sell": "Shop.stock", "refill": "Shop.prices", "reprice": "Shop.orders"})
async def three_services():
    """Three services of a shop, each with the lock of one and in need of the next one's."""
    shop = Shop()
    await all_of(sell=shop.sell(), refill=shop.refill(), reprice=shop.reprice())


@deadlock({f"eater_{seat}": "Lock" for seat in range(5)})
async def philosophers():
    """Five philosophers and five forks."""
    forks = [asyncio.Lock() for _ in range(5)]

    async def eats(seat):
        async with forks[seat]:
            await asyncio.sleep(0.1)
            async with forks[(seat + 1) % 5]:
                pass

    await all_of(**{f"eater_{seat}": eats(seat) for seat in range(5)})


@deadlock({"export": "Lock 'rows'", "reindex": "Lock 'index'"})
async def by_acquire():
    """Locks taken by acquire() and given back in finally."""
    rows, index = asyncio.Lock(), asyncio.Lock()

    async def export():
        await index.acquire()
        try:
            await asyncio.sleep(0.1)
            await rows.acquire()
            rows.release()
        finally:
            index.release()

    async def reindex():
        await rows.acquire()
        try:
            await asyncio.sleep(0.1)
            await index.acquire()
            index.release()
        finally:
            rows.release()

    await all_of(export=export(), reindex=reindex())


@deadlock({"merge": "Lock", "split": "Lock"})
async def in_a_context_manager():
    """Tables that are locked by an asynccontextmanager of the program's own."""
    locks = {"users": asyncio.Lock(), "teams": asyncio.Lock()}

    @contextlib.asynccontextmanager
    async def locked(table):
        async with locks[table]:
            yield table

    async def works(first, second):
        async with locked(first):
            await asyncio.sleep(0.1)
            async with locked(second):
                pass

    await all_of(merge=works("users", "teams"), split=works("teams", "users"))


@deadlock({"first": "Lock", "second": "Lock"})
async def in_an_exit_stack():
    """Each request locks all that it needs, in the order in which it names it."""
    locks = defaultdict(asyncio.Lock)

    async def request(*names):
        async with contextlib.AsyncExitStack() as stack:
            for name in names:
                await stack.enter_async_context(locks[name])
                await asyncio.sleep(0.1)

    await all_of(first=request("a", "b", "c"), second=request("c", "d", "a"))


class Transaction:
    """Its lock is taken in `__aenter__`."""

    def __init__(self, row):
        self.row = row

    async def __aenter__(self):
        await self.row.acquire()
        return self

    async def __aexit__(self, *error):
        self.row.release()


@deadlock({"rename": "Lock", "delete": "Lock"})
async def in_a_class_of_its_own():
    """Rows that are locked by a class with `__aenter__` and `__aexit__`."""
    one, other = asyncio.Lock(), asyncio.Lock()

    async def works(first, second):
        async with Transaction(first):
            await asyncio.sleep(0.1)
            async with Transaction(second):
                pass

    await all_of(rename=works(one, other), delete=works(other, one))


class Pools:
    def __init__(self):
        self.connections, self.downloads = asyncio.Semaphore(1), asyncio.BoundedSemaphore(1)

    async def mirror(self):
        async with self.downloads:
            await asyncio.sleep(0.1)
            async with self.connections:
                pass

    async def refresh(self):
        async with self.connections:
            await asyncio.sleep(0.1)
            async with self.downloads:
                pass


@deadlock({"mirror": "Pools.connections", "refresh": "Pools.downloads"})
async def two_pools():
    """A pool of connections and one of downloads, each with one place."""
    pools = Pools()
    await all_of(mirror=pools.mirror(), refresh=pools.refresh())


@deadlock({"job_0": "Semaphore", "job_1": "Semaphore"})
async def a_pool_twice():
    """Jobs that hold one of two connections, and ask for a second one."""

    class Pool:
        def __init__(self):
            self.places = asyncio.Semaphore(2)

    async def job(pool):
        async with pool.places:
            await asyncio.sleep(0.1)
            async with pool.places:
                pass

    pool = Pool()
    await all_of(job_0=job(pool), job_1=job(pool))


@deadlock({"tells": "Lock", "waits": "Lock 'log'"})
async def with_a_condition():
    """A condition and a lock for the log, in both orders."""
    news, log = asyncio.Condition(), asyncio.Lock()

    async def tells():
        async with log:
            await asyncio.sleep(0.1)
            async with news:
                news.notify_all()

    async def waits():
        async with news:
            await asyncio.sleep(0.1)
            async with log:
                pass

    await all_of(tells=tells(), waits=waits())


@deadlock({"consumer": "Lock", "producer": "Lock 'stats'"})
async def woken_by_a_condition():
    """A consumer that is woken needs its condition again, and has the lock that the producer wants."""
    news, stats = asyncio.Condition(), asyncio.Lock()

    async def consumer():
        async with news, stats:
            await news.wait()

    async def producer():
        await asyncio.sleep(0.1)
        async with news:
            news.notify()
            async with stats:
                pass

    await all_of(consumer=consumer(), producer=producer())


class Cache:
    """A lock for each key, so that a value is made once."""

    def __init__(self, recipes):
        self.recipes, self.locks, self.values = recipes, defaultdict(asyncio.Lock), {}

    async def get(self, key):
        async with self.locks[key]:
            if key not in self.values:
                await asyncio.sleep(0.1)  # renders it
                self.values[key] = [await self.get(needed) for needed in self.recipes[key]]
            return self.values[key]


@deadlock({"page": "Lock", "menu": "Lock"})
async def a_lock_for_each_key():
    """A cache with a lock for each key: the page needs the menu, and the menu the page."""
    cache = Cache({"page": ["menu"], "menu": ["page"]})
    await all_of(page=cache.get("page"), menu=cache.get("menu"))


@deadlock({"start_up": "Lock"})
async def start_up_awaits_itself():
    """Services are made when first asked for; the database needs the settings, which need the database."""
    services = Cache({"database": ["settings"], "settings": ["database"]})
    await all_of(start_up=services.get("database"))


def synchronized(method):
    @functools.wraps(method)
    async def locked(self, *args):
        async with self.lock:
            return await method(self, *args)

    return locked


class Cart:
    def __init__(self):
        self.lock, self.items = asyncio.Lock(), []

    @synchronized
    async def add(self, item):
        self.items.append(item)
        await self.save()

    @synchronized
    async def save(self):
        await asyncio.sleep(0.1)


@deadlock({"checkout": "Cart.lock"})
async def entered_twice():
    """A synchronized method calls another one."""
    await all_of(checkout=Cart().add("book"))


class Table:
    def __init__(self):
        self.lock, self.rows = asyncio.Lock(), {"a": 1, "b": 2}

    async def each(self):
        async with self.lock:
            for row in self.rows.items():
                yield row

    async def put(self, key, value):
        async with self.lock:
            self.rows[key] = value


@deadlock({"doubles": "Table.lock"})
async def in_a_generator():
    """An asynchronous generator reads a table in its lock; who iterates changes the table."""

    async def doubles():
        table = Table()
        async for key, value in table.each():
            await table.put(key, 2 * value)

    await all_of(doubles=doubles())


@deadlock({"pay": "Lock", "refund": "Lock"})
async def with_a_timeout():
    """Two locks in both orders; after 20 seconds one of both gives up."""
    accounts, ledger = asyncio.Lock(), asyncio.Lock()

    async def works(first, second):
        async with first:
            await asyncio.sleep(0.1)
            async with asyncio.timeout(20), second:
                pass

    await all_of(pay=works(accounts, ledger), refund=works(ledger, accounts))


@deadlock({"alice_to_bob": "Account.lock", "bob_to_alice": "Account.lock"})
async def in_another_threads_loop():
    """The two transfers, in a loop that runs in a thread."""
    threading.Thread(target=lambda: asyncio.run(two_transfers()), name="bank", daemon=True).start()
    await asyncio.Event().wait()


@deadlock({"reader_0": "Lock 'Folder.writing'", "writer": "Lock 'Folder.reading'"})
async def readers_and_a_writer():
    """A lock for readers and writers: the first reader and a writer take its two locks in opposite order."""

    class Folder:
        def __init__(self):
            self.reading, self.writing, self.readers = asyncio.Lock(), asyncio.Lock(), 0

        async def read(self):
            async with self.reading:
                await asyncio.sleep(0.1)
                self.readers += 1
                if self.readers == 1:
                    await self.writing.acquire()

        async def write(self):
            async with self.writing:
                await asyncio.sleep(0.2)
                async with self.reading:
                    pass

    folder = Folder()
    await all_of(writer=folder.write(), reader_0=folder.read(), reader_1=folder.read())


if __name__ == "__main__":
    asyncio.run(asked()())
