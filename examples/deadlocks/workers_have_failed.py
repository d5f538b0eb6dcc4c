"""The workers of a queue fail, and nobody sees it: `join()` waits for jobs that nobody does."""

import asyncio


async def worker(jobs):
    while True:
        name = await jobs.get()
        print("resized", name.removesuffix(".png"))
        jobs.task_done()


async def main():
    jobs = asyncio.Queue()
    workers = [asyncio.create_task(worker(jobs), name=f"worker-{number}") for number in range(2)]
    for name in ("cat.png", None, "dog.png", None, "owl.png"):
        jobs.put_nowait(name)
    await jobs.join()
    for one in workers:
        one.cancel()


asyncio.run(main())
