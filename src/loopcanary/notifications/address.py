"""Where the webhook is. The address is a secret: with it, anyone can post. It comes from the environment or a
file, and is in no error, status, report or command line.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from urllib.parse import urlsplit

from loopcanary.late_dataclass import dataclass
from loopcanary.notifications.words import NO_ADDRESS, VARIABLE

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


def read(environ: Mapping[str, str], file: str | None) -> tuple[Address, str]:
    """The address, and where it was found. AddressError."""
    text, where = environ.get(VARIABLE, "").strip(), VARIABLE
    if not text and file is not None:
        where = "the file of webhook_file"
        try:
            with Path(file).open("rb") as opened:
                text = opened.read(_LENGTH_MAX + 1).decode().strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is no text"
            raise AddressError(f"{where} cannot be read: {reason}") from None
    if not text:
        raise AddressError(NO_ADDRESS)
    return parse(text, where), where


def parse(text: str, where: str) -> Address:
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
        return "is no address"
    try:
        parts = urlsplit(text)
        port_is_sound = parts.port != 0
    except ValueError:
        return "is no address"
    if parts.scheme not in {"http", "https"} or not parts.hostname or not port_is_sound:
        return "is no address: it begins with https://"
    if parts.username is not None:
        return "has a user name, which is not sent"
    if parts.scheme == "http" and not is_this_machine(parts.hostname):
        return "is not encrypted: https is wanted for other machines"
    return None
