"""Two tasks take two locks in opposite order."""

import asyncio


class Bank:
    def __init__(self):
        self.accounts = asyncio.Lock()
        self.ledger = asyncio.Lock()

    async def pay(self):
        async with self.accounts:
            await asyncio.sleep(0.1)  # looks the account up
            async with self.ledger:
                print("paid")

    async def refund(self):
        async with self.ledger:
            await asyncio.sleep(0.1)  # looks the entry up
            async with self.accounts:
                print("refunded")


async def main():
    bank = Bank()
    async with asyncio.TaskGroup() as group:
        group.create_task(bank.pay(), name="pay")
        group.create_task(bank.refund(), name="refund")


asyncio.run(main())
