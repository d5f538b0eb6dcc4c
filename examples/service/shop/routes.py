"""The service's routes: each handler is `async def`, and most of them block all the same."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

from aiohttp import web

from shop import catalog, contact, labels, pricing, recommendations
from shop.inventory import Inventory
from shop.orders import Orders

ORDERS = web.AppKey("orders", Orders)
INVENTORY = web.AppKey("inventory", Inventory)


def make_app(folder: Path) -> web.Application:
    app = web.Application(client_max_size=256 * 1024 * 1024)
    app[ORDERS] = Orders(folder)
    app[INVENTORY] = Inventory()
    app.add_routes(
        [
            web.get("/health", health),
            web.get("/price/{sku}", price),
            web.get("/stock/{sku}", stock),
            web.get("/recommended", recommended),
            web.get("/report", report),
            web.get("/label/{order}", label),
            web.post("/contact", register_contact),
            web.post("/catalog", replace_catalog),
            web.post("/orders", place_order),
            web.get("/audit", audit),
        ]
    )
    app.cleanup_ctx.append(lifetime)
    return app


async def lifetime(app: web.Application) -> AsyncIterator[None]:
    collecting = asyncio.create_task(catalog.give_memory_back_regularly(), name="give-memory-back")
    yield
    collecting.cancel()
    app[INVENTORY].close()
    app[ORDERS].close()


async def health(_request: web.Request) -> web.Response:
    await asyncio.sleep(0)
    return web.json_response({"status": "ok"})


async def price(request: web.Request) -> web.Response:
    return web.json_response({"price": pricing.price_of(request.match_info["sku"])})


async def stock(request: web.Request) -> web.Response:
    return web.json_response({"stock": request.app[INVENTORY].stock_of(request.match_info["sku"])})


async def recommended(_request: web.Request) -> web.Response:
    # In a thread, as one should; but the sort there holds the GIL from its begin to its end.
    best = await asyncio.to_thread(recommendations.best_sellers)
    return web.json_response({"best": best})


async def report(request: web.Request) -> web.Response:
    return web.json_response({"pairs": request.app[ORDERS].bought_together()})


async def label(request: web.Request) -> web.Response:
    return web.Response(text=labels.render(request.match_info["order"]))


async def register_contact(request: web.Request) -> web.Response:
    return web.json_response({"valid": contact.is_valid(await request.text())})


async def replace_catalog(request: web.Request) -> web.Response:
    products = catalog.replace(await request.read())
    return web.json_response({"products": products})


async def place_order(request: web.Request) -> web.Response:
    request.app[ORDERS].append(await request.read())
    return web.json_response({"status": "accepted"})


async def audit(request: web.Request) -> web.Response:
    return web.json_response({"entries": request.app[ORDERS].audit()})
