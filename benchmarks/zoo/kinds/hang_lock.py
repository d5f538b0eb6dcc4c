"""A lock that is never released; killed while waiting for it."""

from __future__ import annotations

import threading
import time

from zoo.stage import measured, run

EXPECT = {"cause": ["lock"], "thread": ["keeper"], "killed": True}
accounts = threading.Lock()
taken = threading.Event()


def keep_account():
    with accounts:
        taken.set()
        time.sleep(3600)  # <- holder


def book():
    with accounts:  # <- culprit
        pass


async def handler():
    with measured():
        threading.Thread(target=keep_account, name="keeper", daemon=True).start()
        taken.wait()
        book()


if __name__ == "__main__":
    run(handler)
