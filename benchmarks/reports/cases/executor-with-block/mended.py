"""An evaluator runs its realizations in threads of the loop's default executor, and its monitor speaks meanwhile."""

from __future__ import annotations

import asyncio
import subprocess
import time


def run_realization(number: int) -> int:
    """Runs a forward model; the child is in place of a simulator."""
    subprocess.run(["sleep", "1.5"], check=True)
    return number


class Evaluator:
    def __init__(self, count: int) -> None:
        self.count = count
        self.state = "waiting"

    async def monitor(self) -> None:
        while True:
            print(f"monitor: {self.state}")
            await asyncio.sleep(0.5)

    async def evaluate(self) -> list[int]:
        loop = asyncio.get_running_loop()
        self.state = "running"
        realizations = [loop.run_in_executor(None, run_realization, number) for number in range(self.count)]
        results = await asyncio.gather(*realizations)
        self.state = "done"
        return results


async def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


async def main() -> None:
    late: list[float] = []
    beats = asyncio.create_task(heartbeat(late))
    evaluator = Evaluator(3)
    monitor = asyncio.create_task(evaluator.monitor())
    await asyncio.sleep(1)
    results = await evaluator.evaluate()
    await asyncio.sleep(1)
    beats.cancel()
    monitor.cancel()
    print(f"{results}, worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    asyncio.run(main())
