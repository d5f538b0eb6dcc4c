"""The figures of the day."""

from __future__ import annotations

import re

HISTORY = [f"2026-{day % 12 + 1:02}-{day % 28 + 1:02} lamp-{day % 97} x{day % 9}" for day in range(120_000)]
_LINE = re.compile(r"(?P<month>\d+-\d+)-\d+ (?P<item>\S+) x(?P<count>\d+)")


def best_sellers(today):
    """Of this year and today: adds all lines up, each time."""
    sold = {}
    for line in HISTORY:
        found = _LINE.match(line)
        sold[found["item"]] = sold.get(found["item"], 0) + int(found["count"])
    for item in today:
        sold[item] = sold.get(item, 0) + 1
    return sorted(sold, key=sold.get, reverse=True)[:3]
