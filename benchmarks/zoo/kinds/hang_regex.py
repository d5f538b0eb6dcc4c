"""A regular expression that never ends, holding the GIL; killed in it."""

from __future__ import annotations

import re

from zoo.stage import measured, run

EXPECT = {"cause": ["native-cpu"], "killed": True, "loops": "all"}


def validate(text):
    return re.match(r"(\w+)*!", text)  # <- culprit


async def handler():
    with measured():
        validate("a" * 60)


if __name__ == "__main__":
    run(handler)
