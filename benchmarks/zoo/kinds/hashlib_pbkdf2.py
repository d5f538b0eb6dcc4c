"""A handler checks a password; the C call lets go of the GIL."""

from __future__ import annotations

import hashlib

from zoo.stage import measured, run, sized

EXPECT = {"cause": ["native-cpu"], "loops": "all"}


def check_password(rounds):
    return hashlib.pbkdf2_hmac("sha256", b"correct horse", b"salt", rounds)  # <- culprit


ROUNDS = sized(check_password, 0.3)


async def handler():
    with measured():
        check_password(ROUNDS)


if __name__ == "__main__":
    run(handler)
