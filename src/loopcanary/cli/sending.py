"""Sends a bundle by HTTP: one POST, repeated until the receiver acknowledges it. Standard library only."""

from __future__ import annotations

import hashlib
import random
import ssl
import time
from collections.abc import Callable, Mapping
from http.client import HTTPException
from typing import IO, Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

import click

from loopcanary.notifications.webhook import AddressError, parse_address

TOKEN_VARIABLE = "LOOPCANARY_SEND_TOKEN"  # noqa: S105 - its name
ATTEMPTS = 8
LONGEST_S = 60.0
PATIENCE_S = 600.0
"""The sender gives up where a receiver asks for a longer pause than this."""
_TIMEOUT_S = 60.0
_AGAIN = frozenset({408, 425, 429})
"""The 4xx answers that do not judge the request: RFC 9110 15.5.9, RFC 8470 5.2, RFC 6585 4."""
_NEVER = frozenset({501, 505})

SLEEP: Callable[[float], None] = time.sleep


class _NoRedirect(HTTPRedirectHandler):
    """urllib would follow by a GET without the bundle."""

    def redirect_request(self, *_: Any) -> None:
        """The answer stays an HTTPError."""


def shown(url: str) -> str:
    """The URL without its query, which may hold a secret."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}{parts.path}"


def check(url: str) -> None:
    """Raises UsageError unless this is an https address, or one of this machine, without a user name."""
    try:
        parse_address(url, "--send")
    except AddressError as error:
        raise click.UsageError(str(error)) from None


def send(bundle: IO[bytes], url: str, environ: Mapping[str, str], say: Callable[[str], None]) -> None:
    """Returns when the receiver has acknowledged the bundle. ClickException: it refused, or all attempts
    failed. `say` takes a line for people before each further attempt."""
    opener = build_opener(_NoRedirect)
    headers = _headers(bundle, environ)
    for attempt in range(ATTEMPTS):
        bundle.seek(0)
        failure: OSError | HTTPException
        try:
            with opener.open(Request(url, bundle, headers), timeout=_TIMEOUT_S):  # noqa: S310 - checked
                return
        except HTTPError as error:
            failure, words = error, f"the receiver answers {error.code} {error.reason}"
            is_final = error.code in _NEVER or (error.code < 500 and error.code not in _AGAIN)
            error.close()
        except (OSError, HTTPException) as error:
            failure, reason = error, error.reason if isinstance(error, URLError) else error
            words = f"the connection failed ({reason or type(reason).__name__})"
            is_final = isinstance(reason, ssl.SSLCertVerificationError)
        wait_s = max(min(LONGEST_S, 2.0**attempt) * random.uniform(0.5, 1), _retry_after_s(failure))  # noqa: S311
        if is_final or attempt + 1 == ATTEMPTS or wait_s > PATIENCE_S:
            raise click.ClickException(f"{shown(url)}: the bundle was not sent: {words}") from None
        say(f"{shown(url)}: {words}; next attempt in {wait_s:.1f} s")
        SLEEP(wait_s)


def _headers(bundle: IO[bytes], environ: Mapping[str, str]) -> dict[str, str]:
    bundle.seek(0)
    digest = hashlib.sha256()
    while piece := bundle.read(1 << 20):
        digest.update(piece)
    headers = {
        "Content-Type": "application/zip",
        "Content-Length": str(bundle.tell()),
        # draft-ietf-httpapi-idempotency-key-header: the value is a quoted string.
        "Idempotency-Key": f'"{digest.hexdigest()}"',
        "User-Agent": "loopcanary",
    }
    token = environ.get(TOKEN_VARIABLE, "").strip()
    if token:
        if not token.isascii() or not token.isprintable() or " " in token:
            raise click.UsageError(f"{TOKEN_VARIABLE} is not a token: write one word of ASCII")
        headers["Authorization"] = f"Bearer {token}"
    return headers


def _retry_after_s(failure: Exception) -> float:
    """Seconds that the receiver asks for (RFC 9110, 10.2.3); a date counts as none."""
    text = (failure.headers.get("Retry-After") or "").strip() if isinstance(failure, HTTPError) else ""
    return float(text[:9]) if text.isascii() and text.isdigit() else 0.0
