"""A task awaits its thread inside a lock, and the thread asks the loop for what needs the lock."""

import asyncio


class Cache:
    def __init__(self):
        self.lock = asyncio.Lock()
        self.pages = {}

    async def fill(self, name):
        async with self.lock:
            await asyncio.to_thread(self.render, name, asyncio.get_running_loop())

    def render(self, name, loop):  # in a thread
        asyncio.run_coroutine_threadsafe(self.store(name, f"<h1>{name}</h1>"), loop).result()

    async def store(self, name, page):
        async with self.lock:
            self.pages[name] = page


async def main():
    await asyncio.create_task(Cache().fill("home"), name="fill home")


asyncio.run(main())
