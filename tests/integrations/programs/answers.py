"""answers.py FOLDER SERVER LOOP: answers "ok", and blocks once while other requests are on their way."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
import time
from pathlib import Path

FOLDER, SERVER, LOOP = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
BLOCKED_S = 0.25
LISTENING = socket.create_server(("127.0.0.1", 0), backlog=64)
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok"


def answer(path):
    if path == "/blocks":
        (FOLDER / "blocked").touch()
        while not (FOLDER / "sent").exists():
            time.sleep(0.005)
        time.sleep(BLOCKED_S)
    return "ok"


async def asgi(scope, receive, send):
    if scope["type"] == "http":
        body = answer(scope["path"]).encode()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": body})
        return
    while True:
        kind = (await receive())["type"]
        await send({"type": f"{kind}.complete"})
        if kind == "lifespan.shutdown":
            return


def wsgi(environ, start_response):
    body = answer(environ["PATH_INFO"]).encode()
    start_response("200 OK", [("Content-Length", "2")])
    return [body]


async def streams():
    async def serve(reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        answer(head.split()[1].decode())
        writer.write(ANSWER)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, sock=LISTENING)
    await server.serve_forever()


class Protocol(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        answer(data.split()[1].decode())
        self.transport.write(ANSWER)
        self.transport.close()


async def protocol():
    server = await asyncio.get_running_loop().create_server(Protocol, sock=LISTENING)
    await server.serve_forever()


async def hypercorn():
    from hypercorn.asyncio import serve
    from hypercorn.config import Config

    config = Config()
    config.bind = [f"fd://{LISTENING.fileno()}"]
    config.errorlog = None
    await serve(asgi, config, shutdown_trigger=asyncio.Event().wait)


async def aiohttp():
    from aiohttp import web

    async def handle(request):
        return web.Response(text=answer(request.path))

    application = web.Application()
    application.router.add_get("/{path:.*}", handle)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.SockSite(runner, LISTENING).start()
    await asyncio.Event().wait()


def wsgiref():
    from wsgiref.simple_server import WSGIServer, make_server

    port = LISTENING.getsockname()[1]
    LISTENING.close()
    WSGIServer.request_queue_size = 64
    with make_server("127.0.0.1", port, wsgi) as server:
        announce()
        server.serve_forever()


def waitress():
    import waitress as server

    server.serve(wsgi, sockets=[LISTENING], threads=1)


def announce():
    (FOLDER / "port.new").write_text(str(port))
    (FOLDER / "port.new").rename(FOLDER / "port")


signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
port = LISTENING.getsockname()[1]
if SERVER != "wsgiref":
    announce()
serve = globals()[SERVER]
if LOOP == "none":
    serve()
else:
    factory = None
    if LOOP == "uvloop":
        import uvloop

        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(serve())
