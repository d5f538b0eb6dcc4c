"""A task fails between `acquire()` and `release()`."""

import asyncio


class Cache:
    def __init__(self):
        self.lock = asyncio.Lock()
        self.values = {}

    async def fill(self, key, value):
        await self.lock.acquire()
        self.values[key] = 100 / value
        self.lock.release()

    async def read(self, key):
        async with self.lock:
            return self.values.get(key)


async def main():
    cache = Cache()
    filling = asyncio.create_task(cache.fill("rate", 0), name="fill")
    await asyncio.gather(filling, return_exceptions=True)
    readers = [asyncio.create_task(cache.read("rate"), name=f"read {number}") for number in range(3)]
    print(await asyncio.gather(*readers))


asyncio.run(main())
