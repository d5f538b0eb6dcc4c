"""A handler parses a large document by lxml."""

from __future__ import annotations

from lxml import etree
from zoo.stage import measured, run, sized

EXPECT = {"cause": ["native-cpu"], "needs": ["lxml"], "advice": ["to_thread"]}


def document(count):
    return b"<orders>" + b'<order sku="4711"><price>12.75</price></order>' * count + b"</orders>"


def orders_in(text):
    return etree.fromstring(text).tag  # <- culprit


async def handler():
    with measured():
        orders_in(TEXT)


if __name__ == "__main__":
    TEXT = document(sized(lambda count: orders_in(document(count)), 0.35, start=10_000))
    run(handler)
