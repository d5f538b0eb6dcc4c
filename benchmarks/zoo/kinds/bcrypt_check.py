"""A handler checks a password by bcrypt."""

from __future__ import annotations

import time

import bcrypt
from zoo.stage import measured, run

EXPECT = {"cause": ["native-cpu"], "needs": ["bcrypt"], "advice": ["to_thread"]}


def check(password, salt):
    return bcrypt.hashpw(password, salt)  # <- culprit


def salt_for(seconds):
    rounds, took = 6, 0.0
    while took < seconds:
        rounds += 1
        before = time.thread_time()
        check(b"correct horse", bcrypt.gensalt(rounds))
        took = time.thread_time() - before
    return bcrypt.gensalt(rounds)


async def handler():
    with measured():
        check(b"correct horse", SALT)


if __name__ == "__main__":
    SALT = salt_for(0.2)
    run(handler)
