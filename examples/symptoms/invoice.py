import asyncio


def tax(price):
    rest = 0
    for part in range(price):
        rest += part % 7
    return rest


def discount(price):
    return price // 10


def total(prices):
    return sum(tax(price) - discount(price) for price in prices)


async def main():
    await asyncio.sleep(0.1)
    total(range(3000))


asyncio.run(main())
