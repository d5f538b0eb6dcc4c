"""A handler waits for a rate limit with time.sleep."""

from __future__ import annotations

import time

from zoo.stage import measured, run

EXPECT = {"cause": ["sleep"], "loops": "all"}


def wait_for_rate_limit():
    time.sleep(0.3)  # <- culprit


async def handler():
    with measured():
        wait_for_rate_limit()


if __name__ == "__main__":
    run(handler)
