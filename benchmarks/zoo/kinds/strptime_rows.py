"""A handler reads the dates of a table by strptime."""

from __future__ import annotations

from datetime import datetime

from zoo.stage import measured, run, sized

EXPECT = {"cause": ["cpu"], "advice": ["process", "to_thread", "sleep(0)", "fromisoformat"]}


def dates(rows):
    return [datetime.strptime(row, "%Y-%m-%d %H:%M") for row in rows]  # noqa: DTZ007  # <- culprit


async def handler():
    with measured():
        dates(ROWS)


if __name__ == "__main__":
    ROWS = ["2026-11-23 18:30"] * sized(lambda count: dates(["2026-11-23 18:30"] * count), 0.35)
    run(handler)
