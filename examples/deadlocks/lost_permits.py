"""A pool's permits are lost by requests that are cancelled."""

import asyncio


class Pool:
    def __init__(self, size):
        self.permits = asyncio.Semaphore(size)

    async def query(self):
        await self.permits.acquire()
        await asyncio.sleep(1)  # the database is slow
        self.permits.release()


async def request(pool):
    try:
        async with asyncio.timeout(0.2):
            await pool.query()
    except TimeoutError:
        print("too slow")


async def main():
    pool = Pool(2)
    for number in range(3):
        await asyncio.create_task(request(pool) if number < 2 else pool.query(), name=f"request {number}")


asyncio.run(main())
