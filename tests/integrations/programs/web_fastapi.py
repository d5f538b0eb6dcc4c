"""A FastAPI application: routes of its own, of a router, of a mounted application, of plain Starlette."""

from __future__ import annotations

import asyncio
import time

from blocking import until_sampled
from fastapi import APIRouter, FastAPI
from starlette.responses import PlainTextResponse
from starlette.routing import Route

router = APIRouter(prefix="/shop")
app = FastAPI()


@app.get("/orders/{order_id}")
async def order(order_id: int) -> int:
    await asyncio.sleep(0.001)
    for seconds in until_sampled(0.25):
        time.sleep(seconds)  # noqa: ASYNC251  # order
    return order_id


@app.get("/quick")
async def quick() -> str:
    await asyncio.sleep(0.001)
    return "quick"


@app.get("/stuck")
async def stuck() -> None:
    time.sleep(3_600)  # noqa: ASYNC251  # stuck


@app.get("/pool")
def pool() -> str:
    time.sleep(0.5)
    return "on a thread"


@router.post("/items/{item_id}")
async def item(item_id: str) -> str:
    for seconds in until_sampled(0.25):
        time.sleep(seconds)  # noqa: ASYNC251  # item
    return item_id


async def user(request: object) -> PlainTextResponse:
    for seconds in until_sampled(0.25):
        time.sleep(seconds)  # noqa: ASYNC251  # user
    return PlainTextResponse("mounted")


app.include_router(router)
inner = FastAPI()
inner.router.routes.append(Route("/users/{name}", user))
app.mount("/inner", inner)
