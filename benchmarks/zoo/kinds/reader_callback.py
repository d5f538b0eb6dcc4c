"""A callback of loop.add_reader computes."""

from __future__ import annotations

import asyncio
import hashlib
import os

from zoo.stage import measured, run, sized

EXPECT = {"cause": ["native-cpu"]}


def verify(rounds):
    return hashlib.pbkdf2_hmac("sha256", b"token", b"salt", rounds)  # <- culprit


ROUNDS = sized(verify, 0.3)


async def handler():
    loop = asyncio.get_running_loop()
    done = loop.create_future()
    readable, writable = os.pipe()

    def on_readable():
        with measured():
            loop.remove_reader(readable)
            verify(ROUNDS)
            done.set_result(None)

    loop.add_reader(readable, on_readable)
    await asyncio.sleep(0.01)
    os.write(writable, b"token")
    await done


if __name__ == "__main__":
    run(handler)
