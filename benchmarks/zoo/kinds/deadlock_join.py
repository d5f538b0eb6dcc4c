"""A handler joins a thread that needs the lock it holds; killed in the deadlock."""

from __future__ import annotations

import threading

from zoo.stage import measured, run

EXPECT = {
    "cause": ["lock"],
    "thread": ["uploader"],
    "killed": True,
    "advice": ["Release the lock"],
}
files = threading.Lock()


def upload():
    with files:  # <- holder
        pass


def finish(worker):
    worker.join()  # <- culprit


async def handler():
    with measured(), files:
        worker = threading.Thread(target=upload, name="uploader", daemon=True)
        worker.start()
        finish(worker)


if __name__ == "__main__":
    run(handler)
