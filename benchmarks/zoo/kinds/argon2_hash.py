"""A handler hashes a password by Argon2, which computes on threads of its own."""

from __future__ import annotations

import time

import argon2
from zoo.stage import measured, run

EXPECT = {"cause": ["native-cpu", "lock"], "needs": ["argon2-cffi"], "advice": ["to_thread"]}


def hashed(hasher):
    return hasher.hash("correct horse")  # <- culprit


def hasher_for(seconds):
    cost, took = 1, 0.0
    while took < seconds:
        cost += max(1, cost // 4)
        before = time.monotonic()
        hashed(argon2.PasswordHasher(time_cost=cost))
        took = time.monotonic() - before
    return argon2.PasswordHasher(time_cost=cost)


async def handler():
    with measured():
        hashed(HASHER)


if __name__ == "__main__":
    HASHER = hasher_for(0.25)
    run(handler)
