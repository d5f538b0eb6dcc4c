"""Posts notices to a webhook, as Slack's incoming webhooks take them:
https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks

`text` says everything by itself: Mattermost, and Discord's addresses that end in /slack, show it and leave
`blocks` alone. Names in it come from the watched program and its users: they are shown as they are, mention
nobody, link nothing and format nothing.
"""

from __future__ import annotations

import http.client
import ipaddress
import json
import os
import socket
import ssl
import time
from base64 import b64encode
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import field
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from loopcanary.late_dataclass import dataclass
from loopcanary.notifications.notice import Notice
from loopcanary.notifications.outlet import DeliveryError
from loopcanary.whose_folder import open_file

_WAIT_S = 5.0
"""For each step: connecting, TLS, the answer's next piece."""
_RETRY_AFTER_MAX_S = 3_600.0
_OVERLOADED = 500
_HEADER_MAX, _SECTION_MAX = 150, 3_000
"""Of Slack: https://docs.slack.dev/reference/block-kit/blocks"""
_APART = "\u200b"
"""Zero width: `@everyone` and `@channel` mention people in Discord and Mattermost, `@` and this does not."""
_MARKS = str.maketrans({"`": "'", "@": f"@{_APART}", "&": "&amp;", "<": "&lt;", ">": "&gt;"})
"""&, < and > are Slack's control characters; nothing ends a piece of code, in which nothing else counts."""


class Webhook:
    """Posts to one address. One thread at a time."""

    name = "webhook"

    def __init__(self, address: Address) -> None:
        self._address = address
        self._connection: http.client.HTTPConnection | None = None
        """While a notice is delivered."""

    def deliver(self, notice: Notice) -> None:
        """DeliveryError where the receiver did not take it; its text says nothing of the address."""
        body = body_of(notice)
        try:
            connection = self._connection = self._connected()
            try:
                status, retry_after = self._post(connection, body)
            finally:
                self._connection = None
                connection.close()
        except (OSError, http.client.HTTPException, ValueError) as error:
            # Their texts may have the host or the address.
            raise DeliveryError(_reason(error), again=True) from None
        _judge(status, retry_after)

    def cut(self) -> None:
        """Ends every wait of the delivering thread on its connection."""
        connection = self._connection
        if connection is not None and isinstance(connection.sock, socket.socket):
            with suppress(OSError):
                connection.sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Nothing stays open between two posts."""

    def _post(self, connection: http.client.HTTPConnection, body: bytes) -> tuple[int, str | None]:
        headers = {"Content-Type": "application/json", "User-Agent": "loopcanary", "Connection": "close"}
        connection.request("POST", self._address.target, body, headers)
        answer = connection.getresponse()
        # Redirects are not followed: the message goes to the address that was given, or nowhere.
        return answer.status, answer.getheader("Retry-After")

    def _connected(self) -> http.client.HTTPConnection:
        host, port = self._address.host, self._address.port
        if not self._address.is_encrypted:
            return http.client.HTTPConnection(host, port, timeout=_WAIT_S)  # this machine
        context = ssl.create_default_context()
        proxy = None if is_this_machine(host) or proxy_bypass(host) else getproxies().get("https")
        if not proxy:
            return http.client.HTTPSConnection(host, port, timeout=_WAIT_S, context=context)
        parts = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
        connection = http.client.HTTPSConnection(
            parts.hostname or "", parts.port or 80, timeout=_WAIT_S, context=context
        )
        connection.set_tunnel(host, port, headers=_credentials(parts.username, parts.password))
        return connection


def _credentials(user: str | None, password: str | None) -> dict[str, str]:
    """The header with a proxy's user and password, as its variable has them."""
    if user is None:
        return {}
    both = f"{unquote(user)}:{unquote(password or '')}".encode()
    return {"Proxy-Authorization": f"Basic {b64encode(both).decode()}"}


def _judge(status: int, retry_after: str | None) -> None:
    if 200 <= status < 300:
        return
    if 300 <= status < 400:
        raise DeliveryError(f"the receiver answers HTTP {status}: redirects are not followed", again=False)
    wait_s = _seconds(retry_after) if status in {429, 503} else None
    again = status in {408, 429} or status >= _OVERLOADED
    raise DeliveryError(f"the receiver answers HTTP {status}", again=again, wait_s=wait_s)


def _seconds(retry_after: str | None) -> float | None:
    """RFC 9110, 10.2.3: seconds, or a date."""
    if retry_after is None:
        return None
    text = retry_after.strip()
    if text.isascii() and text.isdigit():
        # More digits than any wait has are not made a number of.
        return min(float(int(text[:9])), _RETRY_AFTER_MAX_S)
    try:
        wait_s = parsedate_to_datetime(text).timestamp() - time.time()
    except (ValueError, TypeError, OverflowError, OSError):
        return None
    return min(max(wait_s, 0.0), _RETRY_AFTER_MAX_S)


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "the receiver does not answer in time"
    if isinstance(error, ssl.SSLCertVerificationError):
        return "the receiver's certificate cannot be verified"
    if isinstance(error, socket.gaierror):
        return "the receiver's name cannot be resolved"
    if isinstance(error, ConnectionRefusedError):
        return "the receiver refuses the connection"
    return f"the receiver cannot be reached ({type(error).__name__})"


def body_of(notice: Notice) -> bytes:
    title, lines = _code(notice.title), [_code(line) for line in notice.lines]
    header = {"type": "plain_text", "text": notice.title[:_HEADER_MAX], "emoji": False}
    sections: list[dict[str, Any]] = [{"type": "header", "text": header}]
    if lines:
        text = "\n".join(lines)[:_SECTION_MAX]
        sections.append({"type": "section", "text": {"type": "mrkdwn", "text": text}})
    message = {"text": "\n".join([title, *lines]), "blocks": sections}
    return json.dumps(message, ensure_ascii=True).encode()


def _code(text: str) -> str:
    return f"`{text.translate(_MARKS)}`"


VARIABLE = "LOOPCANARY_WEBHOOK_URL"
NO_ADDRESS = f"no address is set: put it into {VARIABLE}, or into a file and its path into webhook_file"
_LENGTH_MAX = 4_096


class AddressError(ValueError):
    """There is no webhook to be used. Its text is for people, and says nothing of the address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A checked address, which does not show itself."""

    is_encrypted: bool
    host: str = field(repr=False)
    port: int = field(repr=False)
    target: str = field(repr=False)
    """Path and query, as the request has it."""


def read_address(environ: Mapping[str, str], file: str | None) -> tuple[Address, str]:
    """The address, and where it was found. AddressError."""
    text, where = environ.get(VARIABLE, "").strip(), VARIABLE
    if not text and file is not None:
        where = "the file of webhook_file"
        try:
            # A secret that is mounted is a link. A pipe would be waited for.
            with os.fdopen(open_file(os.path.realpath(file)), "rb") as opened:
                text = opened.read(_LENGTH_MAX + 1).decode().strip()
        except (OSError, UnicodeDecodeError) as error:
            known = error.strerror or "it is not a plain file" if isinstance(error, OSError) else None
            reason = known or "it is not text"
            raise AddressError(f"{where} cannot be read: {reason}") from None
    if not text:
        raise AddressError(NO_ADDRESS)
    return parse_address(text, where), where


def parse_address(text: str, where: str) -> Address:
    """The parts of an address: https, or http on this machine. AddressError names `where` only."""
    problem = _problem(text)
    if problem is not None:
        raise AddressError(f"the address in {where} {problem}")
    parts = urlsplit(text)
    assert parts.hostname is not None
    is_encrypted = parts.scheme == "https"
    return Address(
        is_encrypted=is_encrypted,
        host=parts.hostname,
        port=parts.port or (443 if is_encrypted else 80),
        target=(parts.path or "/") + (f"?{parts.query}" if parts.query else ""),
    )


def is_this_machine(host: str) -> bool:
    """Whether what is sent there stays on this machine."""
    if host == "localhost" or host.endswith(".localhost"):  # RFC 6761
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _problem(text: str) -> str | None:
    if len(text) > _LENGTH_MAX or not (text.isascii() and text.isprintable()) or " " in text:
        return "is not an address"
    try:
        parts = urlsplit(text)
        port_is_sound = parts.port != 0
    except ValueError:
        return "is not an address"
    if parts.scheme not in {"http", "https"} or not parts.hostname or not port_is_sound:
        return "is not an address: write one that begins with https://"
    if parts.username is not None:
        return "contains a user name, which is not sent: leave it out"
    if parts.scheme == "http" and not is_this_machine(parts.hostname):
        return "is not encrypted: use https for other machines"
    return None
