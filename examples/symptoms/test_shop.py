import asyncio
import time


async def price():
    time.sleep(0.2)


def test_price():
    asyncio.run(price())
