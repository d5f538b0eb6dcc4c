"""Deadlocks of trio's tasks."""

from __future__ import annotations

import trio

from zoo.deadlocks.catalogue import asked, deadlock


async def all_of(**tasks):
    """Tasks with these names, each a function and its arguments."""
    async with trio.open_nursery() as nursery:
        for name, (function, *args) in tasks.items():
            nursery.start_soon(function, *args, name=name)


async def moves(first, second):
    async with first:
        await trio.sleep(0.1)
        async with second:
            pass


class Bank:
    def __init__(self):
        self.accounts, self.ledger = trio.Lock(), trio.Lock()

    async def pay(self):
        async with self.accounts:
            await trio.sleep(0.1)
            async with self.ledger:
                pass

    async def refund(self):
        async with self.ledger:
            await trio.sleep(0.1)
            async with self.accounts:
                pass


@deadlock({"pay": "Bank.ledger", "refund": "Bank.accounts"})
async def trio_opposite_order():
    """Payments take accounts and ledger, refunds ledger and accounts."""
    bank = Bank()
    await all_of(pay=(bank.pay,), refund=(bank.refund,))


@deadlock({"left": "StrictFIFOLock", "middle": "Lock", "right": "Lock"})
async def trio_three_fair_locks():
    """Three robots on a circle of rails, one of which has a fair lock."""
    rails = [trio.Lock(), trio.StrictFIFOLock(), trio.Lock()]
    await all_of(left=(moves, *rails[:2]), middle=(moves, *rails[1:]), right=(moves, rails[2], rails[0]))


@deadlock({"copy": "Semaphore", "move": "Semaphore"})
async def trio_semaphores():
    """Two drives with one reader each."""
    one, other = trio.Semaphore(1), trio.Semaphore(1)
    await all_of(copy=(moves, one, other), move=(moves, other, one))


@deadlock({"parse": "Lock", "render": "CapacityLimiter"})
async def trio_limiter():
    """A limiter of CPU, and a lock of the output, in both orders."""
    cores, output = trio.CapacityLimiter(1), trio.Lock()
    await all_of(parse=(moves, cores, output), render=(moves, output, cores))


@deadlock({"ask": "Lock 'log'", "tell": "Lock"})
async def trio_condition():
    """A condition and a lock for the log, in both orders."""
    news, log = trio.Condition(), trio.Lock()

    async def ask():
        async with news:
            await trio.sleep(0.1)
            async with log:
                pass

    async def tell():
        async with log:
            await trio.sleep(0.1)
            async with news:
                news.notify_all()

    await all_of(ask=(ask,), tell=(tell,))


@deadlock({"consumer": "Lock", "producer": "Lock 'stats'"})
async def trio_woken_by_a_condition():
    """A consumer that is woken needs its condition again, and has the lock that the producer wants."""
    news, stats = trio.Condition(), trio.Lock()

    async def consumer():
        async with news, stats:
            await news.wait()

    async def producer():
        await trio.sleep(0.1)
        async with news:
            news.notify()
            async with stats:
                pass

    await all_of(consumer=(consumer,), producer=(producer,))


@deadlock({"sync": "the task upload", "upload": "Lock"})
async def trio_nursery_in_the_lock():
    """A nursery in the lock that its task needs."""
    lock = trio.Lock()

    async def upload():
        async with lock:
            pass

    async def sync():
        async with lock, trio.open_nursery() as nursery:
            nursery.start_soon(upload, name="upload")

    await all_of(sync=(sync,))


@deadlock({"main": "the task server", "server": "Lock"})
async def trio_start():
    """A server that is started in a lock needs it before it says that it has started."""
    lock = trio.Lock()

    async def server(*, task_status):
        async with lock:
            task_status.started()

    async def main(nursery):
        async with lock:
            await nursery.start(server, name="server")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(main, nursery, name="main")


@deadlock(
    {f"crawl {depth}": f"the task crawl {depth + 1}" for depth in range(3)} | {"crawl 3": "CapacityLimiter"}
)
async def trio_nested_in_a_limiter():
    """A crawler keeps its place while it waits for the pages below: four levels, three places."""
    places = trio.CapacityLimiter(3)

    async def crawl(depth):
        async with places:
            await trio.sleep(0.1)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(crawl, depth + 1, name=f"crawl {depth + 1}")

    await all_of(**{"crawl 0": (crawl, 0)})


@deadlock({"pay": "Lock", "refund": "Lock"})
async def trio_by_acquire():
    """Locks taken by acquire(), with a time limit of 20 seconds."""
    accounts, ledger = trio.Lock(), trio.Lock()

    async def works(first, second):
        await first.acquire()
        try:
            await trio.sleep(0.1)
            with trio.move_on_after(20):
                await second.acquire()
                second.release()
        finally:
            first.release()

    await all_of(pay=(works, accounts, ledger), refund=(works, ledger, accounts))


@deadlock({"main": "MemorySendChannel", "worker": "Lock"}, unseen="channels are not looked into")
async def trio_channel_in_the_lock():
    """A task sends, in a lock, to a worker that needs the lock."""
    send, receive = trio.open_memory_channel(0)
    lock = trio.Lock()

    async def worker():
        await trio.sleep(0.1)
        async with lock:
            await receive.receive()

    async def main():
        async with lock:
            await send.send(1)

    await all_of(worker=(worker,), main=(main,))


if __name__ == "__main__":
    trio.run(asked())
