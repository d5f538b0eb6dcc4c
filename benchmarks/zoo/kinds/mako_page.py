"""A handler renders a long page by Mako, whose code has lines that the template does not have."""

from __future__ import annotations

import mako.template
from zoo.stage import measured, run, sized

EXPECT = {"cause": ["cpu"], "needs": ["Mako"], "advice": ["process", "to_thread", "page", "sleep(0)"]}
PAGE = mako.template.Template(
    """<table>
% for number in range(count):
<tr><td>${number | h}</td><td>${number * 2 | h}</td></tr>
% endfor
</table>
"""
)


def show_orders(count):
    return PAGE.render(count=count)  # <- culprit


async def handler():
    with measured():
        show_orders(COUNT)


if __name__ == "__main__":
    COUNT = sized(show_orders, 0.35, start=1000)
    run(handler)
