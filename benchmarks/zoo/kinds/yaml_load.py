"""A handler reads settings by PyYAML, in Python."""

from __future__ import annotations

import gc

import yaml
from zoo.stage import measured, run, sized

EXPECT = {"cause": ["cpu"], "needs": ["PyYAML"], "advice": ["CSafeLoader", "process", "to_thread"]}


def text_of(count):
    return "- {sku: 4711, price: 12.75, tags: [new, red]}\n" * count


def settings(text):
    return yaml.safe_load(text)  # <- culprit


async def handler():
    with measured():
        settings(TEXT)


if __name__ == "__main__":
    gc.disable()  # its collections are a kind of their own
    TEXT = text_of(sized(lambda count: settings(text_of(count)), 0.4, start=20))
    run(handler)
