"""A regular expression that backtracks without end; the C call holds the GIL."""

from __future__ import annotations

import re
import time

from zoo.stage import measured, run

EXPECT = {"cause": ["native-cpu"], "loops": "all"}
WORDS = re.compile(r"(\w+)*!")


def validate(text):
    return WORDS.match(text)  # <- culprit


def text_for(seconds):
    text, took = "a" * 12, 0.0
    while took < 0.02:
        text += "a"
        before = time.thread_time()
        validate(text)
        took = time.thread_time() - before
    while took < seconds:
        text, took = text + "a", took * 2
    return text


TEXT = text_for(0.25)


async def handler():
    with measured():
        validate(TEXT)


if __name__ == "__main__":
    run(handler)
