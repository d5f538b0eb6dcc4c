"""The file in which the portable engine leaves its hangs (docs/internals/hang-format.md): two halves, of
which the newest whole one counts. A process that is killed as it writes one leaves the other as it was.
"""

from __future__ import annotations

import struct
import zlib
from typing import Final

HANG: Final = ".hang"
"""Suffix of the file, which lies among the store's flight files."""
HALF_BYTES: Final = 1 << 18
_MAGIC: Final = b"lchang1\n"
_HEAD: Final = struct.Struct("<8sQII")
PAYLOAD_BYTES: Final = HALF_BYTES - _HEAD.size
TEXT_BYTES: Final = 1 << 22
"""A payload is JSON of no more bytes, packed by zlib. A reader unpacks no more."""


def half(number: int, payload: bytes) -> bytes:
    """The half of the write with that number; it belongs at `number % 2` halves."""
    return _HEAD.pack(_MAGIC, number, len(payload), _sum(number, payload)) + payload


def newest(data: bytes) -> bytes | None:
    """The payload of the newest whole half; None: neither is whole."""
    found = [one for one in (_read(data[:HALF_BYTES]), _read(data[HALF_BYTES:])) if one is not None]
    return max(found)[1] if found else None


def _read(data: bytes) -> tuple[int, bytes] | None:
    if len(data) < _HEAD.size:
        return None
    magic, number, length, checksum = _HEAD.unpack_from(data)
    payload = data[_HEAD.size : _HEAD.size + length]
    is_whole = magic == _MAGIC and len(payload) == length and _sum(number, payload) == checksum
    return (number, payload) if is_whole else None


def _sum(number: int, payload: bytes) -> int:
    return zlib.crc32(payload, zlib.crc32(number.to_bytes(8, "little")))
