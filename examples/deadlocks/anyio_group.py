"""A task group waits, inside a lock, for a task that needs the lock (anyio, as below FastAPI and httpx)."""

import anyio


class Cache:
    def __init__(self):
        self.lock = anyio.Lock()

    async def refresh(self):
        async with self.lock, anyio.create_task_group() as group:
            group.start_soon(self.load, "users", name="load users")

    async def load(self, name):
        await anyio.sleep(0.1)  # asks for it
        async with self.lock:
            print(f"{name} loaded")


async def main():
    await Cache().refresh()


anyio.run(main)
