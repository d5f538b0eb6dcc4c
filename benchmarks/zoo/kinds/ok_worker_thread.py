"""Control: a thread blocks and computes; the loop looks now and then whether it is done."""

from __future__ import annotations

import hashlib
import threading
import time

from zoo.stage import pause, run, sized

EXPECT = {"control": True, "loops": "others"}


def digest(rounds):
    return hashlib.pbkdf2_hmac("sha256", b"report", b"salt", rounds)


ROUNDS = sized(digest, 0.3)


def make_report():
    time.sleep(0.3)
    digest(ROUNDS)


async def handler():
    worker = threading.Thread(target=make_report)
    worker.start()
    while worker.is_alive():
        await pause(0.02)


if __name__ == "__main__":
    run(handler)
