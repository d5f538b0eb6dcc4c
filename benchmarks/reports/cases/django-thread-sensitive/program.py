"""An async view of Django gathers five plain functions, which sync_to_async runs one after the other."""

from __future__ import annotations

import asyncio
import socket
import time
import urllib.request

import django
import uvicorn
from asgiref.sync import sync_to_async
from django.conf import settings
from django.core.asgi import get_asgi_application
from django.http import HttpRequest, HttpResponse
from django.urls import path

settings.configure(ALLOWED_HOSTS=["*"], ROOT_URLCONF=__name__, SECRET_KEY="local", USE_TZ=True)
django.setup()


@sync_to_async
def report(year: int) -> int:
    """In place of a query that takes a second."""
    time.sleep(1)
    return year


async def reports(_request: HttpRequest) -> HttpResponse:
    years = await asyncio.gather(*[report(year) for year in range(2020, 2025)])
    return HttpResponse(repr(years))


async def health(_request: HttpRequest) -> HttpResponse:
    return HttpResponse("ok")


urlpatterns = [path("reports", reports), path("health", health)]
app = get_asgi_application()


def visit(url: str) -> str:
    began = time.monotonic()
    with urllib.request.urlopen(url, timeout=60) as answer:
        return f"{answer.read().decode()} after {time.monotonic() - began:.1f} s"


async def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


async def main(config: uvicorn.Config, web: socket.socket) -> None:
    late: list[float] = []
    beats = asyncio.create_task(heartbeat(late))
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve(sockets=[web]))
    await asyncio.sleep(0.5)
    url = f"http://127.0.0.1:{web.getsockname()[1]}"
    slow = asyncio.create_task(asyncio.to_thread(visit, f"{url}/reports"))
    await asyncio.sleep(1.5)
    print("health:", await asyncio.to_thread(visit, f"{url}/health"))
    print("reports:", await slow)
    beats.cancel()
    server.should_exit = True
    await serving
    print(f"worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    listener = socket.create_server(("127.0.0.1", 0))
    configuration = uvicorn.Config(app, log_level="warning", lifespan="off")
    configuration.load()
    asyncio.run(main(configuration, listener))
