"""Where bundles are sent to."""

from __future__ import annotations

import hashlib
import ipaddress
import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from loopcanary.late_dataclass import dataclass
from loopcanary.uploads.errors import UploadError

TOKEN_VARIABLE = "LOOPCANARY_UPLOAD_TOKEN"  # noqa: S105 - its name
_HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\x20-\x7e]*)")  # RFC 9110, 5.1 and 5.5, in ASCII
_TOKEN = re.compile(r"[\x21-\x7e]+")
_OURS = frozenset({"content-length", "content-type", "content-digest", "idempotency-key", "host"})


@dataclass(frozen=True, slots=True)
class UploadTarget:
    """An address, checked."""

    url: str

    @classmethod
    def of(cls, url: str, *, allow_plain: bool) -> UploadTarget:
        """The receiver at this URL. UploadError: `http` over a network needs `allow_plain`."""
        try:
            parts = urlsplit(url)
            host, _ = parts.hostname, parts.port
        except ValueError:
            # The error's text may hold a piece of a password: all before the first slash is taken for a port.
            raise UploadError("this is no URL: https://host[:port]/path is wanted") from None
        if parts.scheme not in ("http", "https") or not host:
            raise UploadError("a URL to upload to begins with https:// and a host")
        if parts.username is not None or parts.password is not None:
            raise UploadError(
                f"user and password do not belong in a URL, where others see them: use {TOKEN_VARIABLE}, "
                "--token-file or --headers-file"
            )
        if parts.scheme == "http" and not allow_plain and not _is_this_machine(host):
            raise UploadError(
                f"http would show the stalls, and the token, to everyone between here and {host}: use "
                "https, or --insecure-http where that is no matter"
            )
        return cls(url)

    @property
    def shown(self) -> str:
        """Without query, which may hold a secret."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}{parts.path}"

    def key(self, form: str) -> str:
        """Under what the journal knows it, when it is sent records in this form; not the URL itself."""
        return hashlib.sha256(f"{self.url}\n{form}".encode()).hexdigest()


def _is_this_machine(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def headers_of(
    environ: Mapping[str, str], token_file: Path | None, headers_file: Path | None
) -> dict[str, str]:
    """What identifies the sender: a bearer token, headers of any kind. UploadError, which shows no value."""
    headers = {} if headers_file is None else _headers_in(headers_file)
    token = environ.get(TOKEN_VARIABLE, "") if token_file is None else _read(token_file)
    where = TOKEN_VARIABLE if token_file is None else str(token_file)
    token = token.strip()
    if token:
        if _TOKEN.fullmatch(token) is None:
            raise UploadError(f"what {where} holds is no token: one word of ASCII is wanted")
        headers["Authorization"] = f"Bearer {token}"
    elif token_file is not None:
        raise UploadError(f"{where} is empty")
    return headers


def _headers_in(path: Path) -> dict[str, str]:
    headers: dict[str, str] = {}
    for number, line in enumerate(_read(path).splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        match = _HEADER.fullmatch(line.rstrip())
        if match is None:
            raise UploadError(f"{path}, line {number}: a header is wanted, such as X-Api-Key: abc")
        if match[1].lower() in _OURS:
            raise UploadError(f"{path}, line {number}: {match[1]} is set by loopcanary itself")
        headers[match[1]] = match[2]
    return headers


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, ValueError) as error:
        raise UploadError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
