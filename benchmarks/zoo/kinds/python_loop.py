"""A handler computes in pure Python."""

from __future__ import annotations

from zoo.stage import measured, run, sized

EXPECT = {"cause": ["cpu"], "loops": "all"}


def count_primes(limit):
    found = []
    for number in range(2, limit):  # <- culprit
        for prime in found[:20]:  # <- culprit
            if number % prime == 0:  # <- culprit
                break  # <- culprit
        else:
            found.append(number)  # <- culprit
    return found


ENOUGH = sized(count_primes, 0.3)


async def handler():
    with measured():
        count_primes(ENOUGH)


if __name__ == "__main__":
    run(handler)
