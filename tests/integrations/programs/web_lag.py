"""web_lag.py FOLDER LOOP [CERTIFICATE]: on uvicorn, blocks its loop while a request is on its way."""

from __future__ import annotations

import socket
import sys
import time
from pathlib import Path

import uvicorn

FOLDER = Path(sys.argv[1])
BLOCKED_S = 0.25


async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    if scope["path"] == "/blocks":
        (FOLDER / "blocked").touch()
        while not (FOLDER / "sent").exists():
            time.sleep(0.005)  # noqa: ASYNC251
        time.sleep(BLOCKED_S)  # noqa: ASYNC251
    elif scope["path"] == "/fails":
        raise LookupError("before an answer")
    elif scope["path"] == "/stop":
        server.should_exit = True
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


listening = socket.create_server(("127.0.0.1", 0))
(FOLDER / "port.new").write_text(str(listening.getsockname()[1]))
(FOLDER / "port.new").rename(FOLDER / "port")
tls = {"ssl_certfile": sys.argv[3]} if len(sys.argv) > 3 else {}
server = uvicorn.Server(uvicorn.Config(app, loop=sys.argv[2], log_level="warning", lifespan="off", **tls))
server.run(sockets=[listening])
