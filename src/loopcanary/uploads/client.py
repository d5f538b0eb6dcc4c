"""One request with one bundle. The only file that knows the HTTP library (extra `upload`)."""

from __future__ import annotations

import base64
import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from loopcanary.uploads.address import UploadTarget
from loopcanary.uploads.errors import UploadError
from loopcanary.uploads.retrying import Answer

_CONNECT_S = 15.0
_ANSWER_MAX = 1 << 16
"""Bytes of an answer that are read: only its status is wanted."""


class Post(Protocol):
    """Sends a bundle and returns the answer. Raises nothing: a failure is an answer, too."""

    def __call__(self, bundle: Path, digest: str) -> Answer:
        """`digest`: SHA-256 of the file, in hexadecimal."""


@contextmanager
def connected(
    receiver: UploadTarget, headers: Mapping[str, str], *, timeout_s: float, agent: str
) -> Iterator[Post]:
    """A connection that is kept between bundles. UploadError where the library is not installed."""
    try:
        import httpx2
    except ModuleNotFoundError as error:
        raise UploadError(
            'upload needs httpx2, which is not installed: pip install "loopcanary[upload]" brings it'
        ) from error
    timeout = httpx2.Timeout(timeout_s, connect=min(_CONNECT_S, timeout_s))
    try:
        client = httpx2.Client(
            timeout=timeout, follow_redirects=False, headers={"User-Agent": agent, **headers}
        )
    except (httpx2.InvalidURL, ValueError, OSError) as error:  # of a proxy, a file of certificates
        raise UploadError(f"the settings for requests are not in order: {error}") from error

    def post(bundle: Path, digest: str) -> Answer:
        sent = {
            "Content-Type": "application/zip",
            "Content-Length": str(bundle.stat().st_size),
            # RFC 9530; and draft-ietf-httpapi-idempotency-key-header, whose value is a quoted string.
            "Content-Digest": f"sha-256=:{base64.b64encode(bytes.fromhex(digest)).decode()}:",
            "Idempotency-Key": f'"{digest}"',
        }
        try:
            with (
                bundle.open("rb") as file,
                client.stream("POST", receiver.url, content=file, headers=sent) as response,
            ):
                read, patience_ends = 0, time.monotonic() + timeout_s
                for part in response.iter_raw():
                    read += len(part)
                    # Without its end the connection is not used again, and that is all.
                    if read > _ANSWER_MAX or time.monotonic() > patience_ends:
                        break
                return Answer(status=response.status_code, retry_after=response.headers.get("Retry-After"))
        except (httpx2.InvalidURL, httpx2.UnsupportedProtocol) as error:
            return Answer(status=0, words=f"this is no URL to send to: {error}", is_final=True)
        except httpx2.TimeoutException:
            return Answer(status=0, words=f"it does not answer within {timeout_s:g} s")
        except (httpx2.HTTPError, httpx2.StreamError, OSError) as error:
            return Answer(status=0, words=_words(error), is_final=_is_untrusted(error))

    with client:
        yield post


def _words(error: Exception) -> str:
    if _is_untrusted(error):
        return f"its certificate is not trusted ({error})"
    return f"the connection failed ({str(error) or type(error).__name__})"


def _is_untrusted(error: BaseException | None) -> bool:
    """Whether a certificate was refused: that is so the next time, too."""
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return True
        error = error.__cause__ or error.__context__
    return False
