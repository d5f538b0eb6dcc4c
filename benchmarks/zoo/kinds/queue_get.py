"""A handler waits for a thread's result in a queue."""

from __future__ import annotations

import queue
import threading
import time

from zoo.stage import measured, run

EXPECT = {"cause": ["lock"], "loops": "all"}


def produce(results):
    time.sleep(0.3)
    results.put("done")


def wait_for_result(results):
    return results.get()  # <- culprit


async def handler():
    with measured():
        results = queue.Queue()
        threading.Thread(target=produce, args=[results]).start()
        wait_for_result(results)


if __name__ == "__main__":
    run(handler)
