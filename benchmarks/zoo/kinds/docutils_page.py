"""A handler renders a long text by docutils."""

from __future__ import annotations

import gc

import docutils.core
from zoo.stage import measured, run, sized

EXPECT = {"cause": ["cpu"], "needs": ["docutils"], "advice": ["process", "to_thread", "sleep(0)"]}


def text_of(count):
    return "A *long* text with ``code`` and `a link <http://example.org>`__.\n\n- one\n- two\n\n" * count


def page(text):
    return docutils.core.publish_string(text, writer="html")  # <- culprit


async def handler():
    with measured():
        page(TEXT)


if __name__ == "__main__":
    gc.disable()  # its collections are a kind of their own
    TEXT = text_of(sized(lambda count: page(text_of(count)), 0.45, start=10))
    run(handler)
