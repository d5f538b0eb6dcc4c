"""A handler makes a journal durable, entry by entry."""

from __future__ import annotations

import os
import tempfile
import time

from zoo.stage import measured, run

EXPECT = {"cause": ["disk-io"], "loops": "all"}


def append_durably(journal, until):
    while time.monotonic() < until:
        os.pwrite(journal, b"entry", 0)
        os.fsync(journal)  # <- culprit


async def handler():
    with measured(), tempfile.TemporaryFile(dir=os.environ.get("ZOO_DISK")) as file:
        append_durably(file.fileno(), time.monotonic() + 0.3)


if __name__ == "__main__":
    run(handler)
