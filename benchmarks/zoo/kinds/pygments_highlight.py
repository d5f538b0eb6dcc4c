"""A handler colours a long program by Pygments."""

from __future__ import annotations

import pygments
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer
from zoo.stage import measured, run, sized

EXPECT = {
    "cause": ["native-cpu", "cpu"],
    "needs": ["Pygments"],
    "advice": ["process", "to_thread", "sleep(0)"],
}
LEXER = PythonLexer()


def page(text):
    return pygments.highlight(text, LEXER, HtmlFormatter())  # <- culprit


async def handler():
    with measured():
        page(TEXT)


if __name__ == "__main__":
    LINE = "def price_of(sku, count=1):  # of one piece\n    return PRICES[sku] * count + 12.75\n\n"
    TEXT = LINE * sized(lambda count: page(LINE * count), 0.35, start=20)
    run(handler)
