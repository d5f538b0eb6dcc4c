"""A method that takes the lock calls another one that takes it, too."""

import asyncio


class Cart:
    def __init__(self):
        self.lock = asyncio.Lock()
        self.items = []

    async def add(self, item):
        async with self.lock:
            self.items.append(item)
            await self.save()

    async def save(self):
        async with self.lock:
            await asyncio.sleep(0.1)  # writes to the database


asyncio.run(Cart().add("book"))
