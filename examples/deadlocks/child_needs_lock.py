"""A task waits for its child inside a lock that the child needs."""

import asyncio


class Index:
    def __init__(self):
        self.lock = asyncio.Lock()
        self.pages = {}

    async def rebuild(self, names):
        async with self.lock:
            await asyncio.gather(*(asyncio.create_task(self.add(name), name=f"add {name}") for name in names))

    async def add(self, name):
        await asyncio.sleep(0.1)  # reads the page
        async with self.lock:
            self.pages[name] = True


asyncio.run(Index().rebuild(["a", "b"]))
