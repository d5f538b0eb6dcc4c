"""A handler tries again what fails, with tenacity's pauses in between."""

from __future__ import annotations

import tenacity
from zoo.stage import measured, run

EXPECT = {
    "cause": ["sleep"],
    "needs": ["tenacity"],
    "advice": ["AsyncRetrying", "asyncio.sleep", "to_thread"],
}


@tenacity.retry(
    wait=tenacity.wait_fixed(0.1),
    stop=tenacity.stop_after_attempt(4),
    retry_error_callback=lambda state: None,
)
def charge():
    raise ConnectionError("the bank is closed")


def pay():
    charge()  # <- culprit


async def handler():
    with measured():
        pay()


if __name__ == "__main__":
    run(handler)
