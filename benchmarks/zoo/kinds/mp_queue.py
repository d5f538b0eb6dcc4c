"""A handler takes from a queue that another process fills."""

from __future__ import annotations

import multiprocessing
import time

from zoo.stage import measured, run

EXPECT = {"cause": ["subprocess", "lock"], "advice": ["to_thread", "run_in_executor"]}


def work(asked, results):
    asked.wait()
    time.sleep(0.3)
    results.put("done")


def result(results):
    return results.get()  # <- culprit


async def handler():
    ASKED.set()
    with measured():
        result(RESULTS)


if __name__ == "__main__":
    spawning = multiprocessing.get_context("spawn")
    RESULTS, ASKED = spawning.Queue(), spawning.Event()
    child = spawning.Process(target=work, args=[ASKED, RESULTS])
    child.start()
    run(handler)
    child.join()
