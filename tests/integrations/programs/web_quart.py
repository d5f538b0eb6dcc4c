"""A Quart application."""

from __future__ import annotations

import asyncio
import time

from blocking import until_sampled
from quart import Quart

app = Quart(__name__)


@app.get("/orders/<int:order_id>")
async def order(order_id: int) -> str:
    await asyncio.sleep(0.001)
    for seconds in until_sampled(0.25):
        time.sleep(seconds)  # noqa: ASYNC251  # order
    return str(order_id)


@app.get("/quick")
async def quick() -> str:
    return "quick"
