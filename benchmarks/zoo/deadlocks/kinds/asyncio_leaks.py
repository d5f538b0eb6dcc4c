"""Locks of asyncio that are not released."""

from __future__ import annotations

import asyncio

from zoo.deadlocks.catalogue import asked, leak


async def ended(coroutine, name):
    """A task of this name has ended, in whatever way."""
    await asyncio.wait([asyncio.create_task(coroutine, name=name)])


class Cache:
    def __init__(self):
        self.lock, self.values = asyncio.Lock(), {}

    async def fill(self, key, value):
        await self.lock.acquire()
        self.values[key] = 100 / value
        self.lock.release()

    async def read(self, key):
        async with self.lock:
            return self.values.get(key)


@leak("Cache.lock", by="fill")
async def raises():
    """A task fails between acquire() and release()."""
    cache = Cache()
    await ended(cache.fill("rate", 0), "fill")
    await asyncio.gather(*(cache.read("rate") for _ in range(3)))


class Ticket:
    def __init__(self):
        self.lock, self.sold = asyncio.Lock(), False

    async def buy(self):
        await self.lock.acquire()
        if self.sold:
            return False
        self.sold = True
        self.lock.release()
        return True


@leak("Ticket.lock", by="late")
async def returns_early():
    """A ticket that is sold already returns without a release."""
    ticket = Ticket()
    for buyer in ("early", "late", "last"):
        await ended(ticket.buy(), buyer)


class Printer:
    def __init__(self):
        self.lock = asyncio.Lock()

    async def print(self, seconds):
        await self.lock.acquire()
        await asyncio.sleep(seconds)
        self.lock.release()


@leak("Printer.lock", by="long")
async def is_cancelled():
    """A print job is cancelled while it has the printer."""
    printer = Printer()
    job = asyncio.create_task(printer.print(60), name="long")
    await asyncio.sleep(0.1)
    job.cancel()
    await printer.print(0)


@leak("Printer.lock", by="request")
async def times_out():
    """A request has a time limit, and forgets the printer when it is over."""
    printer = Printer()

    async def request():
        try:
            async with asyncio.timeout(0.1):
                await printer.print(60)
        except TimeoutError:
            print("too slow")

    await ended(request(), "request")
    await printer.print(0)


@leak("Lock 'line'", by="import", has_ended=False)
async def continues():
    """An import skips an empty row, and with it the release."""
    line = asyncio.Lock()

    async def load(rows):
        for row in rows:
            await line.acquire()
            if not row:
                continue
            line.release()

    await ended(load(["a", "", "b"]), "import")


@leak("Lock 'lock'", by="poll", has_ended=False)
async def tries_again():
    """A retry acquires the lock anew, which the try that failed has kept."""
    lock = asyncio.Lock()

    async def poll():
        while True:
            try:
                await lock.acquire()
                await asyncio.open_unix_connection("/nowhere")
                lock.release()
            except OSError:
                await asyncio.sleep(0.1)

    await ended(poll(), "poll")


@leak("Lock", by="waits")
async def forgets_a_condition():
    """A consumer has its news, and keeps the lock of the condition."""

    class Mail:
        def __init__(self):
            self.news = asyncio.Condition()

        async def receive(self):
            await self.news.acquire()
            await self.news.wait()

        async def send(self):
            async with self.news:
                self.news.notify()

    mail = Mail()
    receiving = asyncio.create_task(mail.receive(), name="waits")
    await asyncio.sleep(0.1)
    await mail.send()
    await receiving
    await mail.send()


class Pool:
    def __init__(self, size):
        self.permits = asyncio.Semaphore(size)

    async def query(self):
        await self.permits.acquire()
        await asyncio.sleep(1)
        self.permits.release()


@leak("Pool.permits", by="request 1")
async def loses_its_permits():
    """A pool's permits are lost by requests that run out of time."""
    pool = Pool(2)

    async def request():
        async with asyncio.timeout(0.2):
            await pool.query()

    for number in range(2):
        await ended(request(), f"request {number}")
    await pool.query()


@leak("BoundedSemaphore", by="upload")
async def raises_with_a_permit():
    """An upload fails, and keeps the only permit."""

    class Uploads:
        def __init__(self):
            self.permits = asyncio.BoundedSemaphore(1)

        async def upload(self, file):
            await self.permits.acquire()
            if not file:
                raise ValueError("empty")
            self.permits.release()

    uploads = Uploads()
    await ended(uploads.upload(b""), "upload")
    await uploads.upload(b"1")


class Connection:
    """A transaction is begun, and then committed or rolled back."""

    def __init__(self):
        self.busy = asyncio.Lock()

    async def begin(self):
        await self.busy.acquire()

    async def commit(self):
        self.busy.release()

    async def transfer(self, amount):
        await self.begin()
        if amount > 0:
            await self.commit()


@leak("Connection.busy", by="refund")
async def is_not_rolled_back():
    """A transaction that is not committed is not rolled back either."""
    connection = Connection()
    await ended(connection.transfer(5), "payment")
    await ended(connection.transfer(-5), "refund")
    await connection.transfer(5)


class Device:
    def __init__(self, answers):
        self.lock, self.answers = asyncio.Lock(), answers

    async def __aenter__(self):
        await self.lock.acquire()
        if not self.answers:
            raise ConnectionError
        return self

    async def __aexit__(self, *error):
        self.lock.release()


@leak("Device.lock", by="first")
async def fails_to_enter():
    """`__aenter__` fails when it has the lock, so that `__aexit__` is not called."""
    device = Device(answers=False)

    async def uses():
        async with device:
            pass

    await ended(uses(), "first")
    await uses()


@leak("Lock 'lock'", by="search")
async def leaves_a_generator():
    """A generator takes the lock, and is left before its end."""
    lock = asyncio.Lock()

    async def lines():
        await lock.acquire()
        for number in range(3):
            yield number
        lock.release()

    async def search():
        async for line in lines():
            if line == 1:
                break

    await ended(search(), "search")
    await ended(search(), "search again")


@leak("Lock 'slot'", by="request")
async def is_handed_over_and_lost():
    """A request leaves the release to a task that fails."""
    slot, background = asyncio.Lock(), set()

    async def sends():
        raise ConnectionError

    async def sends_and_releases():
        await sends()
        slot.release()

    async def request():
        await slot.acquire()
        background.add(asyncio.create_task(sends_and_releases(), name="background"))

    await ended(request(), "request")
    await ended(request(), "next request")


if __name__ == "__main__":
    asyncio.run(asked()())
