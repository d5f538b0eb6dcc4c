"""The loop and a thread take two locks in opposite order (no --locks needed: the loop stalls)."""

import asyncio
import threading
import time

accounts = threading.Lock()
ledger = threading.Lock()


def refund():
    with ledger:
        time.sleep(0.1)  # looks the entry up
        with accounts:
            print("refunded")


async def pay():
    with accounts:
        time.sleep(0.1)  # looks the account up
        with ledger:
            print("paid")


async def main():
    threading.Thread(target=refund, name="refunds", daemon=True).start()
    await pay()


asyncio.run(main())
