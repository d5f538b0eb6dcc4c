"""Who may ask at all, and the headers of every answer. An ASGI middleware in front of everything.

Other users of this machine can reach the port, and so can every page that the browser has open: a name that
resolves to 127.0.0.1 makes any site's script a neighbour (DNS rebinding), and all ports share cookies. So an
answer takes all of: our own name in Host, the token as cookie, and no word of the browser that another origin
asks (Sec-Fetch-Site, Origin).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from secrets import compare_digest
from typing import Any
from urllib.parse import parse_qsl, urlencode

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

TOKEN = "token"  # noqa: S105 - the name of a parameter
CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = (
    ("content-security-policy", CONTENT_POLICY),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cache-control", "no-store"),
)
_NAMES = ("127.0.0.1", "localhost")
_OWN_FETCHES = frozenset({"", "same-origin", "none"})
"""`none`: the address bar, a link of the terminal. Empty: a program, which has read the token."""


class Guard:
    """Lets in who has the token; answers all others itself."""

    def __init__(self, app: App, *, token: str, port: int, once: str = "") -> None:
        """`once` is a token that opens one time only."""
        self._app = app
        self._token = token
        self._once = once
        self._hosts = frozenset(f"{name}:{port}" for name in _NAMES) | (
            frozenset(_NAMES) if port == 80 else frozenset()
        )
        self._origins = frozenset(f"http://{host}" for host in self._hosts)
        self._cookie = f"loopcanary-{port}"

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        headers = {
            name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]
        }
        if headers.get("host", "") not in self._hosts:
            await _refuse(send, 421, "This address is not served here.")
        elif headers.get("sec-fetch-site", "") not in _OWN_FETCHES:
            await _refuse(send, 403, "Requests of other sites are refused.")
        elif scope["method"] not in ("GET", "HEAD") and headers.get("origin", "") not in self._origins:
            await _refuse(send, 403, "Changes by other sites are refused.")
        elif (token := _query_token(scope)) is not None:
            await self._take_token(scope, token, send)
        elif not self._is_known(headers.get("cookie", "")):
            await _refuse(send, 403, "Open the address that `loopcanary ui` printed; it has a token in it.")
        else:
            await self._app(scope, receive, _with_headers(send))

    def _is_known(self, cookies: str) -> bool:
        # By hand: one cookie of another port that breaks the grammar has `http.cookies` drop ours as well.
        pairs = [one.strip().partition("=") for one in cookies.split(";")]
        return any(name == self._cookie and _same(value, self._token) for name, _, value in pairs)

    def _opens(self, token: str) -> bool:
        if self._once and _same(token, self._once):
            self._once = ""
            return True
        return _same(token, self._token)

    async def _take_token(self, scope: MutableMapping[str, Any], token: str, send: Send) -> None:
        """Turns the token into a cookie, and takes it out of the address, which browsers show, keep and
        copy."""
        if not self._opens(token):
            await _refuse(
                send,
                403,
                "This token is not valid: each `loopcanary ui` has a new one. Open the address that it "
                "printed.",
            )
            return
        rest = [pair for pair in parse_qsl(scope["query_string"].decode("latin-1"), True) if pair[0] != TOKEN]
        # Of the path no more than one slash: two would be another host.
        path = "/" + scope.get("raw_path", b"/").decode("latin-1").partition("?")[0].lstrip("/\\")
        location = path + ("?" + urlencode(rest) if rest else "")
        cookie = f"{self._cookie}={self._token}; Path=/; HttpOnly; SameSite=Strict"
        await _answer(send, 303, "", (("location", location), ("set-cookie", cookie)))


def _query_token(scope: MutableMapping[str, Any]) -> str | None:
    pairs = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    return next((value for name, value in pairs if name == TOKEN), None)


def _same(given: str, right: str) -> bool:
    return compare_digest(given.encode("utf-8", "surrogateescape"), right.encode())


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            given = {name.lower() for name, _ in message["headers"]}
            message["headers"] = [
                *message["headers"],
                *((name.encode(), value.encode()) for name, value in HEADERS if name.encode() not in given),
            ]
        await send(message)

    return sending


async def _refuse(send: Send, status: int, words: str) -> None:
    await _answer(send, status, words + "\n", ())


async def _answer(send: Send, status: int, text: str, more: tuple[tuple[str, str], ...]) -> None:
    headers = (*HEADERS, ("content-type", "text/plain; charset=utf-8"), *more)
    start: Message = {
        "type": "http.response.start",
        "status": status,
        "headers": [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers],
    }
    await send(start)
    await send({"type": "http.response.body", "body": text.encode()})
