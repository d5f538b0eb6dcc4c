"""A web service on uvloop under load, in which one request in ten blocks: `service.py SERVER FRAMEWORK`."""

from __future__ import annotations

import asyncio
import http.client
import socket
import sys
import threading
import time
from pathlib import Path

import uvloop

sys.path.insert(0, str(Path(__file__).parents[2] / "program" / "programs"))
from blocking import until_sampled

CLIENTS, REQUESTS = 4, 10


def read_rates():
    for seconds in until_sampled(0.15):
        time.sleep(seconds)  # <- culprit


async def quick():
    await asyncio.sleep(0.001)
    return {"quick": True}


async def slow():
    read_rates()
    return {"quick": False}


def starlette_app():
    from starlette.applications import Starlette
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    def answering(handler):
        async def answer(_request):
            return JSONResponse(await handler())

        return answer

    return Starlette(routes=[Route("/quick", answering(quick)), Route("/slow", answering(slow))])


def fastapi_app():
    from fastapi import FastAPI

    app = FastAPI()
    app.get("/quick")(quick)
    app.get("/slow")(slow)
    return app


def load(port):
    """Each client has one connection and one request under way."""

    def client():
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=280)
        for number in range(REQUESTS):
            connection.request("GET", "/slow" if number == REQUESTS // 2 else "/quick")
            answer = connection.getresponse()
            answer.read()
            assert answer.status == 200
        connection.close()

    clients = [threading.Thread(target=client) for _ in range(CLIENTS)]
    for each in clients:
        each.start()
    for each in clients:
        each.join()


def with_uvicorn(app, listening):
    import uvicorn

    server = uvicorn.Server(uvicorn.Config(app, loop="uvloop", log_level="warning", lifespan="off"))

    def play():
        load(listening.getsockname()[1])
        server.should_exit = True

    player = threading.Thread(target=play)
    player.start()
    server.run(sockets=[listening])
    player.join()


def with_hypercorn(app, listening):
    from hypercorn.asyncio import serve
    from hypercorn.config import Config

    config = Config()
    config.bind = [f"fd://{listening.dup().detach()}"]  # it closes what it is given
    config.accesslog = config.errorlog = None

    async def main():
        await serve(app, config, shutdown_trigger=lambda: asyncio.to_thread(load, listening.getsockname()[1]))

    uvloop.run(main())


def main():
    server, framework = sys.argv[1:]
    with socket.create_server(("127.0.0.1", 0)) as listening:
        {"uvicorn": with_uvicorn, "hypercorn": with_hypercorn}[server](
            {"starlette": starlette_app, "fastapi": fastapi_app}[framework](), listening
        )


if __name__ == "__main__":
    main()
