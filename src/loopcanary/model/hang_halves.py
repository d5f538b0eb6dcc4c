"""The file in which the portable engine leaves its hangs, as bytes: two halves, of which the newest whole one
counts. A process that is killed in the middle of a write leaves the other half as it was.

A half: magic, number of the write, length and CRC-32 of the rest, then JSON that zlib has packed, with what
`HangWriter` says, the facts of the session, and the evidence of each hang (loopcanary.wire).
"""

from __future__ import annotations

import struct
import zlib
from typing import Final

from loopcanary.late_dataclass import dataclass

HANG: Final = ".hang"
"""Suffix of the file, which lies among the store's flight files."""
HALF_BYTES: Final = 1 << 18
_MAGIC: Final = b"lchang1\n"
_HEAD: Final = struct.Struct("<8sQII")
_NUMBERED: Final = struct.Struct("<Q")
PAYLOAD_BYTES: Final = HALF_BYTES - _HEAD.size
TEXT_BYTES: Final = 1 << 24
"""The JSON of one half has no more: a reader unpacks no more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HangWriter:
    """The process that writes the file. What is not known is 0 or empty."""

    pid: int
    parent_pid: int
    process_start: int
    """Field 22 of /proc/PID/stat."""
    pid_namespace: int
    boot_id: str
    started_ns: int
    """When its engine started, monotonic."""
    paired_ns: int
    """The same moment on both clocks: monotonic, and since 1970."""
    paired_wall_ns: int


def half(number: int, payload: bytes) -> bytes:
    """The half of the write with that number; it belongs at `number % 2` halves. ValueError: too long."""
    if len(payload) > PAYLOAD_BYTES:
        raise ValueError(f"{len(payload)} bytes, where {PAYLOAD_BYTES} have room")
    return _HEAD.pack(_MAGIC, number, len(payload), _sum(number, payload)) + payload


def newest(data: bytes) -> bytes | None:
    """The payload of the newest whole half; None: neither is whole."""
    found = [one for one in (_read(data[:HALF_BYTES]), _read(data[HALF_BYTES:])) if one is not None]
    return max(found)[1] if found else None


def unpacked(payload: bytes) -> bytes:
    """The JSON of a payload. zlib.error: it is no such thing, or longer than any writer makes it."""
    reader = zlib.decompressobj()
    text = reader.decompress(payload, TEXT_BYTES)
    if not reader.eof:
        raise zlib.error("it is cut, or too long")
    return text


def _read(data: bytes) -> tuple[int, bytes] | None:
    if len(data) < _HEAD.size:
        return None
    magic, number, length, checksum = _HEAD.unpack_from(data)
    payload = data[_HEAD.size : _HEAD.size + length]
    is_whole = magic == _MAGIC and len(payload) == length and _sum(number, payload) == checksum
    return (number, payload) if is_whole else None


def _sum(number: int, payload: bytes) -> int:
    return zlib.crc32(payload, zlib.crc32(_NUMBERED.pack(number)))
