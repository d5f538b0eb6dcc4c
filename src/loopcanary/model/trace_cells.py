"""The cells beside a flight file, in which a program notes frames, input and idle work for its keeper.

A ring of cells of one size. Each has its serial, the bytes of its text and a check sum, so that a cell that
is just being written counts as none.
"""

from __future__ import annotations

import struct
from binascii import crc32
from collections.abc import Iterator
from typing import Final

TRACES: Final = ".traces"
"""Behind the flight file's path."""
CELL_BYTES: Final = 4_096
CELLS: Final = 64
_HEAD: Final = struct.Struct("<QII")
TEXT_BYTES: Final = CELL_BYTES - _HEAD.size
PART: Final = b"+"
"""What the text of a cell begins with that has a part of a longer record. The record has a later cell, with
the serials of its parts."""
PARTS_MAX: Final = CELLS // 2
_SERIAL_MAX: Final = 1 << 62


def place_of(serial: int) -> int:
    """Offset in the file of the cell with this serial. Serials begin with 1."""
    return (serial - 1) % CELLS * CELL_BYTES


def cell_of(serial: int, text: bytes) -> bytes:
    """The bytes of a cell. Raises ValueError if the text is longer than TEXT_BYTES."""
    if len(text) > TEXT_BYTES:
        raise ValueError(f"a cell has room for {TEXT_BYTES} bytes, not for {len(text)}")
    return _HEAD.pack(serial, len(text), _check(serial, text)) + text


def cells_in(content: bytes, after: int) -> Iterator[tuple[int, bytes]]:
    """Serial and text of the cells with a serial above `after`, oldest first. The content is untrusted."""
    found: list[tuple[int, bytes]] = []
    for at in range(0, min(len(content), CELLS * CELL_BYTES) - _HEAD.size + 1, CELL_BYTES):
        serial, count, check = _HEAD.unpack_from(content, at)
        text = content[at + _HEAD.size : at + _HEAD.size + count] if count <= TEXT_BYTES else b""
        is_whole = len(text) == count and check == _check(serial, text)
        if is_whole and after < serial < _SERIAL_MAX and at == place_of(serial):
            found.append((serial, text))
    yield from sorted(found)


def _check(serial: int, text: bytes) -> int:
    return crc32(text, serial & 0xFFFFFFFF)
