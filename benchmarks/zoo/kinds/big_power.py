"""A handler raises a large number to a large power; the C call holds the GIL."""

from __future__ import annotations

from zoo.stage import measured, run, sized

EXPECT = {"cause": ["native-cpu"]}
MODULUS = (1 << 2048) - 1942289


def sign(exponent):
    return pow(3, exponent, MODULUS)  # <- culprit


EXPONENT = (1 << sized(lambda bits: sign((1 << bits) - 1), 0.3)) - 1


async def handler():
    with measured():
        sign(EXPONENT)


if __name__ == "__main__":
    run(handler)
