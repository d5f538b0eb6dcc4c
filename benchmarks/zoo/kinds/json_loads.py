"""A handler parses a large body; the C call holds the GIL."""

from __future__ import annotations

import json

from zoo.stage import measured, run, sized

EXPECT = {"cause": ["native-cpu"], "loops": "all"}


def body_of(count):
    return "[" + ",".join(["[1.25,2.5]"] * count) + "]"


BODY = body_of(sized(lambda count: json.loads(body_of(count)), 0.35))


def parse(body):
    return len(json.loads(body))  # <- culprit


async def handler():
    with measured():
        parse(BODY)


if __name__ == "__main__":
    import gc

    gc.disable()  # the many lists would make it a stall by garbage collection
    run(handler)
