"""An endpoint of FastAPI asks another service by requests."""

from __future__ import annotations

import fastapi
import httpx
import requests
from zoo.servers import slow_http
from zoo.stage import measured, run

EXPECT = {
    "cause": ["network-io"],
    "needs": ["fastapi", "httpx", "requests"],
    "about": True,  # the callback is FastAPI's, and longer than the endpoint
    "advice": ["httpx.AsyncClient", "to_thread"],
}
app = fastapi.FastAPI()


@app.get("/quotes/{sku}")
async def quote(sku: str):
    with measured():
        return requests.get(URL, params={"sku": sku}, timeout=5).status_code  # <- culprit


async def handler():
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://shop") as client:
        await client.get("/quotes/4711")


if __name__ == "__main__":
    with slow_http() as URL:
        run(handler)
