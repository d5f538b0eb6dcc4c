"""A handler reads the dates of a table by dateutil."""

from __future__ import annotations

import dateutil.parser
from zoo.stage import measured, run, sized

EXPECT = {
    "cause": ["cpu"],
    "needs": ["python-dateutil"],
    "advice": ["fromisoformat", "strptime", "process", "to_thread", "sleep(0)"],
}


def dates(rows):
    return [dateutil.parser.parse(row) for row in rows]  # <- culprit


async def handler():
    with measured():
        dates(ROWS)


if __name__ == "__main__":
    ROWS = ["23 Nov 2026 18:30:00 UTC"] * sized(
        lambda count: dates(["23 Nov 2026 18:30:00 UTC"] * count), 0.35, start=100
    )
    run(handler)
