"""A handler renders a long text by Markdown."""

from __future__ import annotations

import gc

import markdown
from zoo.stage import measured, run, sized

EXPECT = {"cause": ["cpu"], "needs": ["Markdown"], "advice": ["process", "to_thread", "sleep(0)"]}


def text_of(count):
    return "# Title\n\nA *long* text with [links](/4711) and `code`.\n\n- one\n- two\n\n" * count


def page(text):
    return markdown.markdown(text)  # <- culprit


async def handler():
    with measured():
        page(TEXT)


if __name__ == "__main__":
    gc.disable()  # its collections are a kind of their own
    TEXT = text_of(sized(lambda count: page(text_of(count)), 0.35, start=10))
    run(handler)
