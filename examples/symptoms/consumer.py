import asyncio
import queue
import threading

jobs = queue.Queue()


def consume():
    while True:
        print("done", jobs.get())


async def main():
    threading.Thread(target=consume, name="consumer").start()
    jobs.put("report")
    await asyncio.sleep(0.1)


asyncio.run(main())
