"""Control: a thread computes in C without the GIL."""

from __future__ import annotations

import asyncio
import hashlib

from zoo.stage import run, sized

EXPECT = {"control": True}


def check_password(rounds):
    return hashlib.pbkdf2_hmac("sha256", b"correct horse", b"salt", rounds)


ROUNDS = sized(check_password, 0.6)


async def handler():
    await asyncio.to_thread(check_password, ROUNDS)


if __name__ == "__main__":
    run(handler)
