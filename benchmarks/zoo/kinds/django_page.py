"""A handler renders a long page by Django's templates."""

from __future__ import annotations

import django.template
from django.conf import settings
from zoo.stage import measured, run, sized

EXPECT = {"cause": ["cpu"], "needs": ["Django"], "advice": ["process", "to_thread", "page", "sleep(0)"]}
ENGINE = django.template.Engine()
PAGE = ENGINE.from_string(
    "{% for order in orders %}<tr><td>{{ order.sku }}</td><td>{{ order.price }}</td></tr>{% endfor %}"
)


def show_orders(count):
    orders = [{"sku": "4711", "price": 12}] * count
    return PAGE.render(django.template.Context({"orders": orders}))  # <- culprit


async def handler():
    with measured():
        show_orders(COUNT)


if __name__ == "__main__":
    settings.configure(USE_I18N=False)
    COUNT = sized(show_orders, 0.4, start=100)
    run(handler)
