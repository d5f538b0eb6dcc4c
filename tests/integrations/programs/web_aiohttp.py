"""An aiohttp application on the socket that is given, until it is stopped."""

from __future__ import annotations

import asyncio
import sys
import time

from aiohttp import web
from blocking import until_sampled


async def order(request):
    await asyncio.sleep(0.001)
    for seconds in until_sampled(0.25):
        time.sleep(seconds)  # noqa: ASYNC251  # order
    return web.Response(text=request.match_info["order_id"])


async def item(request):
    for seconds in until_sampled(0.25):
        time.sleep(seconds)  # noqa: ASYNC251  # item
    return web.Response()


async def quick(request):
    return web.Response(text="quick")


shop = web.Application()
shop.add_routes([web.get("/items/{item_id}", item)])
app = web.Application()
app.add_routes([web.get("/orders/{order_id}", order), web.get("/quick", quick)])
app.add_subapp("/shop", shop)
web.run_app(app, path=sys.argv[1], print=None)
