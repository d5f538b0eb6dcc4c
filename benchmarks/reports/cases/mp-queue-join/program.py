"""A task runner on asyncio runs the users' code in child processes and sends the answers on."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import time
from multiprocessing.context import ForkProcess
from multiprocessing.queues import Queue

TASK_TIMEOUT = 3
processes = multiprocessing.get_context("fork")

TASKS = {
    "small": "answer = [{'json': {'row': n}} for n in range(20)]",
    "large": "answer = [{'json': {'row': n, 'text': 'x' * 60}} for n in range(4000)]",
}


def run_code(code: str, answers: Queue) -> None:
    names: dict[str, object] = {}
    exec(code, names)
    answers.put({"answer": names["answer"]})


def execute(process: ForkProcess, answers: Queue) -> list:
    process.start()
    process.join(timeout=TASK_TIMEOUT)
    if process.is_alive():
        process.terminate()
        raise TimeoutError(f"not done within {TASK_TIMEOUT} s")
    return answers.get_nowait()["answer"]


class Runner:
    def __init__(self, outbox: asyncio.Queue[str]) -> None:
        self.outbox = outbox

    async def handle(self, name: str) -> None:
        answers = processes.Queue()
        process = processes.Process(target=run_code, args=(TASKS[name], answers))
        try:
            rows = execute(process, answers)
        except TimeoutError as error:
            await self.outbox.put(json.dumps({"task": name, "error": str(error)}))
        else:
            await self.outbox.put(json.dumps({"task": name, "rows": len(rows)}))


async def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


async def main() -> None:
    late: list[float] = []
    outbox: asyncio.Queue[str] = asyncio.Queue()
    runner = Runner(outbox)
    beats = asyncio.create_task(heartbeat(late))
    for name in ("small", "large", "small", "large"):
        await asyncio.sleep(0.4)
        await runner.handle(name)
        print(await outbox.get())
    await asyncio.sleep(0.3)
    beats.cancel()
    print(f"worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    asyncio.run(main())
