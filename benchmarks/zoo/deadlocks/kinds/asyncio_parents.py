"""Tasks of asyncio that wait, in a lock, for tasks that need it."""

from __future__ import annotations

import asyncio

from zoo.deadlocks.catalogue import asked, deadlock


def spawn(coroutine, name):
    return asyncio.create_task(coroutine, name=name)


class Index:
    """`add` needs the lock in which a rebuild waits for it."""

    def __init__(self):
        self.lock, self.pages = asyncio.Lock(), {}

    async def add(self, name):
        await asyncio.sleep(0.1)  # reads the page
        async with self.lock:
            self.pages[name] = True

    async def rebuild(self, wait):
        async with self.lock:
            await wait(spawn(self.add("home"), "add"))


def rebuild_by(wait):
    return spawn(Index().rebuild(wait), "rebuild")


REBUILD = {"rebuild": "the task add", "add": "Index.lock"}


@deadlock(REBUILD)
async def awaits_its_child():
    """A rebuild awaits a task that needs its lock."""

    async def wait(task):
        await task

    await rebuild_by(wait)


@deadlock(REBUILD)
async def gathers_its_children():
    """A rebuild gathers tasks, one of which needs its lock."""

    async def wait(task):
        await asyncio.gather(task, asyncio.sleep(1))

    await rebuild_by(wait)


@deadlock(REBUILD)
async def waits_for_its_children():
    """A rebuild calls asyncio.wait with a task that needs its lock."""

    async def wait(task):
        await asyncio.wait([task])

    await rebuild_by(wait)


@deadlock(REBUILD)
async def shields_its_child():
    """A rebuild shields a task that needs its lock."""

    async def wait(task):
        await asyncio.shield(task)

    await rebuild_by(wait)


@deadlock(REBUILD)
async def waits_with_a_timeout():
    """A rebuild gives a task that needs its lock a minute."""

    async def wait(task):
        await asyncio.wait_for(task, 60)

    await rebuild_by(wait)


@deadlock(REBUILD)
async def takes_them_as_they_complete():
    """A rebuild takes the results of tasks as they complete; they need its lock."""

    async def wait(task):
        for done in asyncio.as_completed([task]):
            await done

    await rebuild_by(wait)


@deadlock({"sync": "the task upload", "upload": "Lock"})
async def a_group_in_the_lock():
    """A sync starts a TaskGroup in the lock that its uploads need."""
    lock = asyncio.Lock()

    async def upload():
        async with lock:
            pass

    async def sync():
        async with lock, asyncio.TaskGroup() as group:
            group.create_task(upload(), name="upload")

    await spawn(sync(), "sync")


class Service:
    def __init__(self):
        self.lock, self.task = asyncio.Lock(), None

    async def serve(self):
        while True:
            await asyncio.sleep(0.1)
            async with self.lock:
                pass

    async def close(self):
        async with self.lock:
            await asyncio.sleep(0.2)  # says good-bye
            await self.task


@deadlock({"close": "the task serve", "serve": "Service.lock"})
async def shutdown_in_the_lock():
    """A service is closed: in its lock it waits for the end of its worker, which takes the lock at times."""
    service = Service()
    service.task = spawn(service.serve(), "serve")
    await spawn(service.close(), "close")


@deadlock({"report": "the task summary", "summary": "the task totals", "totals": "Lock"})
async def a_grandchild_needs_it():
    """A report awaits a summary, which awaits totals, which need the lock of the report."""
    lock = asyncio.Lock()

    async def totals():
        async with lock:
            pass

    async def summary():
        await spawn(totals(), "totals")

    async def report():
        async with lock:
            await spawn(summary(), "summary")

    await spawn(report(), "report")


@deadlock({"deploy": "the task migrate", "migrate": "Semaphore"})
async def a_child_needs_a_place():
    """A deployment holds the only place for jobs, and waits for a job."""

    class Jobs:
        def __init__(self):
            self.places = asyncio.Semaphore(1)

        async def run(self, job):
            async with self.places:
                await job()

        async def migrate(self):
            await asyncio.sleep(0.1)

        async def deploy(self):
            await spawn(self.run(self.migrate), "migrate")

    jobs = Jobs()
    await spawn(jobs.run(jobs.deploy), "deploy")


@deadlock({f"crawl {depth}": f"the task crawl {depth + 1}" for depth in range(3)} | {"crawl 3": "Semaphore"})
async def nested_in_a_limit():
    """A crawler keeps its place while it waits for the pages below: four levels, three places."""
    places = asyncio.Semaphore(3)

    async def crawl(depth):
        async with places:
            await asyncio.sleep(0.1)
            await asyncio.gather(spawn(crawl(depth + 1), f"crawl {depth + 1}"))

    await spawn(crawl(0), "crawl 0")


@deadlock({"login": "Lock 'session'", "refresh": "the task login"})
async def a_shared_task():
    """A token's refresh waits, in the session's lock, for a login that another task began."""
    session = asyncio.Lock()

    async def login():
        await asyncio.sleep(0.1)
        async with session:
            pass

    async def refresh(running):
        async with session:
            await running

    running = spawn(login(), "login")
    await spawn(refresh(running), "refresh")


@deadlock(
    {"flush": "Queue", "writer": "Lock"}, unseen="a queue's join() waits for no task that could be named"
)
async def a_queues_join():
    """A flush waits for a queue in the lock that the queue's worker needs."""
    lock, queue = asyncio.Lock(), asyncio.Queue()

    async def writer():
        while True:
            await queue.get()
            async with lock:
                queue.task_done()

    async def flush():
        async with lock:
            queue.put_nowait("row")
            await queue.join()

    worker = spawn(writer(), "writer")
    await asyncio.gather(worker, spawn(flush(), "flush"))


@deadlock({"reader": "Event", "writer": "Lock"}, unseen="who is going to set an event cannot be known")
async def an_event_in_the_lock():
    """A reader waits, in a lock, for an event that is set in that lock."""
    lock, written = asyncio.Lock(), asyncio.Event()

    async def reader():
        async with lock:
            await written.wait()

    async def writer():
        await asyncio.sleep(0.1)
        async with lock:
            written.set()

    await asyncio.gather(spawn(reader(), "reader"), spawn(writer(), "writer"))


@deadlock({"left": "the task right", "right": "the task left"})
async def tasks_await_each_other():
    """Two tasks await each other's end."""
    tasks = {}

    async def left():
        await asyncio.sleep(0.1)
        await tasks["right"]

    async def right():
        await asyncio.sleep(0.1)
        await asyncio.wait([tasks["left"]])

    tasks |= {"left": spawn(left(), "left"), "right": spawn(right(), "right")}
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(asked()())
