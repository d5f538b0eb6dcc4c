"""A handler reads a page by BeautifulSoup, with the parser of the standard library."""

from __future__ import annotations

import gc

import bs4
from zoo.stage import measured, run, sized

EXPECT = {"cause": ["cpu"], "needs": ["beautifulsoup4"], "advice": ["lxml", "process", "to_thread"]}


def page_of(count):
    return (
        "<html><body>" + '<p class="row"><a href="/4711">shoe</a> <b>12.75</b></p>' * count + "</body></html>"
    )


def links(page):
    return len(bs4.BeautifulSoup(page, "html.parser").contents)  # <- culprit


async def handler():
    with measured():
        links(PAGE)


if __name__ == "__main__":
    gc.disable()  # its collections are a kind of their own
    PAGE = page_of(sized(lambda count: links(page_of(count)), 0.4, start=50))
    run(handler)
