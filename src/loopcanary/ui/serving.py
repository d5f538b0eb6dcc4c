"""The server: on this machine only, on a port of its own, with a token that cannot be guessed."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable, Sequence

import uvicorn

from loopcanary.late_dataclass import dataclass
from loopcanary.ui.app import Site, application
from loopcanary.ui.guard import TOKEN, App, Guard
from loopcanary.ui.live import Look, Watch
from loopcanary.ui.rendering import Renderer
from loopcanary.ui.sources import OneStore
from loopcanary.ui.tools import Tools

HOST = "127.0.0.1"
_GRACE_S = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    stores: Sequence[OneStore]
    tools: Tools
    look: Look
    errors: tuple[type[Exception], ...]
    own: Callable[[], object]
    """Called before the stores are changed. Raises one of `errors` if they may not be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    port: int = 0
    """0: any free port."""
    editor: str = "vscode"
    """The name of an editor, or an address with `{path}` and `{line}`."""
    folder: str = ""
    """Paths below it are shown relative to it."""


def guarded(site: Site, *, token: str, port: int, once: str = "") -> App:
    """The pages for who has the token, or is the first with the one that opens one time only."""
    return Guard(application(site), token=token, port=port, once=once)


def serve(parts: Parts, wishes: Wishes, ready: Callable[[str, str], None]) -> None:
    """Serves until SIGINT or SIGTERM. When it answers, `ready` gets the address with the token, and one that
    opens one time only. OSError: the port is taken."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listening:
        # A port that was served a minute ago may be served again; on Linux this takes no other process's.
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((HOST, wishes.port))
        listening.listen(64)
        port = listening.getsockname()[1]
        token, once = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        address = f"http://{HOST}:{port}/?{TOKEN}="
        server: uvicorn.Server
        renderer = Renderer(folder=wishes.folder, editor=wishes.editor)
        renderer.prepare()
        site = Site(
            watch=Watch(parts.stores, parts.look, parts.errors, parts.own),
            tools=parts.tools,
            renderer=renderer,
            errors=parts.errors,
            is_over=lambda: server.should_exit,
        )
        server = _Server(
            uvicorn.Config(
                guarded(site, token=token, port=port, once=once),
                log_level="error",
                access_log=False,
                lifespan="off",
                server_header=False,
                date_header=False,
                timeout_graceful_shutdown=_GRACE_S,
                ws="none",
            ),
            lambda: ready(address + token, address + once),
        )
        server.run(sockets=[listening])


class _Server(uvicorn.Server):
    """Calls `started` when it answers."""

    def __init__(self, config: uvicorn.Config, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._say = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        if self.started:
            self._say()
