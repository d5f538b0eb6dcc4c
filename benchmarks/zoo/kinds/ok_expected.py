"""Control: a handler says that it may take this long."""

from __future__ import annotations

import time

from zoo.stage import pause, run

import loopcanary

# Only loopcanary has a word for it.
EXPECT = {"control": True, "loops": "all", "watchers": ["loopcanary", "loopcanary-portable"]}


async def handler():
    with loopcanary.expect("2s"):
        time.sleep(0.4)
    await pause(0.1)


if __name__ == "__main__":
    run(handler)
