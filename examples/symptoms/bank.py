import asyncio


async def pay(accounts, ledger):
    async with accounts:
        await asyncio.sleep(0.1)
        async with ledger:
            pass


async def refund(accounts, ledger):
    async with ledger:
        await asyncio.sleep(0.1)
        async with accounts:
            pass


async def main():
    accounts, ledger = asyncio.Lock(), asyncio.Lock()
    await asyncio.gather(pay(accounts, ledger), refund(accounts, ledger))


asyncio.run(main())
