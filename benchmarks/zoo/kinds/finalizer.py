"""An object's __del__ blocks, at the line that drops it."""

from __future__ import annotations

import time

from zoo.stage import measured, run

EXPECT = {"cause": ["sleep"]}


class Connection:
    def __del__(self):
        time.sleep(0.3)  # <- culprit


def serve():
    connection = Connection()
    connection = None


async def handler():
    with measured():
        serve()


if __name__ == "__main__":
    run(handler)
