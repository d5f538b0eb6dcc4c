"""answers.py FOLDER LOOP WAY BLOCKED_S: every server that runs on the loop answers "ok", and blocks its loop
for "/SERVER/blocks" while other requests are on their way. The way there: tcp, or, to those that know it,
h2c and h2. Tells ports; then, for each line of its input, what was timed so far."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import socket
import ssl
import sys
import threading
import time
from pathlib import Path

import loopcanary

FOLDER, LOOP, WAY = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
BLOCKED_S = float(sys.argv[4])
CERTIFICATE = Path(__file__).with_name("localhost.pem")
TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER) if WAY == "h2" else None
if TLS is not None:
    TLS.load_cert_chain(CERTIFICATE)
BODY = "ok"
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


def listen(kind=socket.socket):
    listening = kind()
    listening.bind(("127.0.0.1", 0))
    listening.listen(64)
    listening.setblocking(False)
    return listening


def port_of(listening):
    return listening.getsockname()[1]


def answer(path):
    if path.endswith("/blocks"):
        server = path.split("/")[1]
        (FOLDER / f"{server} blocks").touch()
        while not (FOLDER / f"{server} sent").exists():
            time.sleep(0.005)
        time.sleep(BLOCKED_S)
    return BODY


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


async def streams(listening):
    async def serve(reader, writer):
        while head := await reader.readuntil(b"\r\n\r\n"):
            answer(head.split()[1].decode())
            writer.write(ANSWER)
            await writer.drain()

    await (await asyncio.start_server(serve, sock=listening)).serve_forever()


class Protocol(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        answer(data.split()[1].decode())
        self.transport.write(ANSWER)


async def protocol(listening):
    loop = asyncio.get_running_loop()
    await (await loop.create_server(Protocol, sock=listening)).serve_forever()


def hypercorn_config(listening):
    from hypercorn.config import Config

    config = Config()
    config.bind = [f"fd://{listening.detach()}"]  # Hypercorn closes it
    config.errorlog = None
    config.keep_alive_timeout = config.ssl_handshake_timeout = 300  # of connections that wait for their turn
    if TLS is not None:
        config.certfile = config.keyfile = str(CERTIFICATE)
    return config


async def hypercorn(listening):
    from hypercorn.asyncio import serve

    await serve(asgi, hypercorn_config(listening), shutdown_trigger=asyncio.Event().wait)


async def aiohttp(listening):
    from aiohttp import web

    async def handle(request):
        return web.Response(text=answer(request.path))

    application = web.Application()
    application.router.add_get("/{path:.*}", handle)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.SockSite(runner, listening).start()
    await asyncio.Event().wait()


async def tornado(listening):
    from tornado.httpserver import HTTPServer
    from tornado.web import Application, RequestHandler

    class Handler(RequestHandler):
        def get(self):
            self.write(answer(self.request.path))

    HTTPServer(Application([("/.*", Handler)])).add_socket(listening)
    await asyncio.Event().wait()


def of_interest():
    if WAY in ("h2c", "h2"):
        return [hypercorn]
    return [streams, protocol, hypercorn, aiohttp, tornado]


async def serve_all():
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    listening = {
        server.__name__: listen()
        for server in of_interest()
        if server in (streams, protocol) or importlib.util.find_spec(server.__name__)
    }
    serving = [asyncio.ensure_future(globals()[name](each)) for name, each in listening.items()]
    tell({name: port_of(each) for name, each in listening.items()})
    threading.Thread(target=obey, args=[lambda: loop.call_soon_threadsafe(ended.set)]).start()
    await ended.wait()
    for each in serving:
        each.cancel()


def serve_wsgiref():
    from wsgiref.simple_server import WSGIServer, make_server

    class Server(WSGIServer):
        request_queue_size = 64

    with make_server("127.0.0.1", 0, wsgi, server_class=Server) as server:
        tell({"wsgiref": port_of(server.socket)})
        threading.Thread(target=obey, args=[server.shutdown]).start()
        server.serve_forever()


def serve_gevent():
    from gevent import socket as cooperative
    from gevent.pywsgi import WSGIServer

    listening = listen(cooperative.socket)
    server = WSGIServer(listening, wsgi, log=None, error_log=None)
    server.start()
    tell({"gevent": port_of(listening)})
    stop = [lambda: server.loop.run_callback_threadsafe(server.stop)]
    threading.Thread(target=obey, args=stop).start()
    server.serve_forever()


async def serve_trio():
    import trio
    from hypercorn.trio import serve

    ended = trio.Event()
    token = trio.lowlevel.current_trio_token()
    listening = listen()
    tell({"hypercorn": port_of(listening)})
    stop = [lambda: trio.from_thread.run_sync(ended.set, trio_token=token)]
    threading.Thread(target=obey, args=stop).start()
    await serve(asgi, hypercorn_config(listening), shutdown_trigger=ended.wait)


def tell(what):
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def obey(stop):
    for _ in sys.stdin:
        tell([each for each in loopcanary.statistics()["input"] if each["loop"].endswith("requests")])
    stop()


if LOOP == "thread":
    serve_wsgiref()
elif LOOP == "gevent":
    serve_gevent()
elif LOOP == "trio":
    import trio

    trio.run(serve_trio)
else:
    factory = None
    if LOOP == "uvloop":
        import uvloop

        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(serve_all())
