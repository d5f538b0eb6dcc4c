"""A handler joins a thread that still works."""

from __future__ import annotations

import threading
import time

from zoo.stage import measured, run

EXPECT = {"cause": ["lock"], "thread": ["uploader"], "loops": "all"}


def upload():
    time.sleep(0.3)  # <- holder


def finish(worker):
    worker.join()  # <- culprit


async def handler():
    with measured():
        worker = threading.Thread(target=upload, name="uploader")
        worker.start()
        finish(worker)


if __name__ == "__main__":
    run(handler)
