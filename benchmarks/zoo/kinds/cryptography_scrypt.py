"""A handler derives a key by scrypt of cryptography."""

from __future__ import annotations

from cryptography.hazmat.primitives.kdf.scrypt import Scrypt
from zoo.stage import measured, run, sized

EXPECT = {"cause": ["native-cpu"], "needs": ["cryptography"], "advice": ["to_thread"]}


def key_of(rounds):
    return Scrypt(salt=b"salt", length=32, n=2**10, r=8, p=rounds).derive(b"correct horse")  # <- culprit


async def handler():
    with measured():
        key_of(ROUNDS)


if __name__ == "__main__":
    ROUNDS = sized(key_of, 0.35, start=4)
    run(handler)
