"""Posts notices to a webhook. Standard library only; each try is over within a bounded time."""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
import time
from base64 import b64encode
from contextlib import suppress
from email.utils import parsedate_to_datetime
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from loopcanary.notifications.address import Address, is_this_machine
from loopcanary.notifications.notice import Notice
from loopcanary.notifications.outlet import DeliveryError
from loopcanary.notifications.slack import body_of

_WAIT_S = 5.0
"""For each step: connecting, TLS, the answer's next piece."""
_WHOLE_S = 10.0
"""For all of them: a receiver may send its answer byte by byte."""
_RETRY_AFTER_MAX_S = 3_600.0
_OVERLOADED = 500


class Webhook:
    """Posts to one address. One thread at a time."""

    name = "webhook"

    def __init__(self, address: Address, *, whole_s: float = _WHOLE_S) -> None:
        self._address = address
        self._whole_s = whole_s

    def deliver(self, notice: Notice) -> None:
        """DeliveryError where the receiver did not take it; its text says nothing of the address."""
        body = body_of(notice)
        try:
            connection = self._connection()
            try:
                status, retry_after = self._post(connection, body)
            finally:
                connection.close()
        except (OSError, http.client.HTTPException, ValueError) as error:
            # Their texts may have the host or the address.
            raise DeliveryError(_reason(error), again=True) from None
        _judge(status, retry_after)

    def close(self) -> None:
        """Nothing stays open between two posts."""

    def _post(self, connection: http.client.HTTPConnection, body: bytes) -> tuple[int, str | None]:
        deadline = threading.Timer(self._whole_s, _cut, [connection])
        deadline.daemon = True
        deadline.start()
        try:
            headers = {"Content-Type": "application/json", "User-Agent": "loopcanary", "Connection": "close"}
            connection.request("POST", self._address.target, body, headers)
            answer = connection.getresponse()
            # Redirects are not followed: the message goes to the address that was given, or nowhere.
            return answer.status, answer.getheader("Retry-After")
        finally:
            deadline.cancel()

    def _connection(self) -> http.client.HTTPConnection:
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
    """Of a proxy, as its variable has them."""
    if user is None:
        return {}
    both = f"{unquote(user)}:{unquote(password or '')}".encode()
    return {"Proxy-Authorization": f"Basic {b64encode(both).decode()}"}


def _cut(connection: http.client.HTTPConnection) -> None:
    """Ends every wait of the other thread on it."""
    if isinstance(connection.sock, socket.socket):
        with suppress(OSError):
            connection.sock.shutdown(socket.SHUT_RDWR)


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
