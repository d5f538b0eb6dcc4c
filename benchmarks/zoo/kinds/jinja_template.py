"""A handler renders a long page of a template, whose code has lines that the template does not have."""

from __future__ import annotations

import tempfile
from pathlib import Path

import jinja2
from zoo.stage import measured, run, sized

EXPECT = {"cause": ["cpu"], "needs": ["Jinja2"]}
ORDERS = """<table>
{% for number in range(count) %}
<tr class="{{ loop.cycle("odd", "even") }}"><td>{{ number }}</td><td>{{ number | round(2) }}</td></tr>
{% endfor %}
</table>
"""


def page_of(folder):
    Path(folder, "orders.html").write_text(ORDERS)
    return jinja2.Environment(loader=jinja2.FileSystemLoader(folder), autoescape=True).get_template(
        "orders.html"
    )


def show_orders():
    return PAGE.render(count=COUNT)  # <- culprit


async def handler():
    with measured():
        show_orders()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as here:
        PAGE = page_of(here)
        COUNT = sized(lambda count: PAGE.render(count=count), 0.3, start=1_000)
        run(handler)
