"""A handler waits for a reentrant lock that a computing thread holds."""

from __future__ import annotations

import hashlib
import threading

from zoo.stage import measured, run, sized

EXPECT = {"cause": ["lock"], "thread": ["rebuilder"]}
cache = threading.RLock()
taken = threading.Event()


def digest(rounds):
    return hashlib.pbkdf2_hmac("sha256", b"cache", b"salt", rounds)


ROUNDS = sized(digest, 0.35)


def rebuild_cache():
    with cache:
        taken.set()
        hashlib.pbkdf2_hmac("sha256", b"cache", b"salt", ROUNDS)  # <- holder


def look_up():
    cache.acquire()  # <- culprit
    cache.release()


async def handler():
    with measured():
        threading.Thread(target=rebuild_cache, name="rebuilder").start()
        taken.wait()
        look_up()


if __name__ == "__main__":
    run(handler)
