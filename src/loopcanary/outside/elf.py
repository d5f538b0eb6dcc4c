"""Symbols of a program or library, from its image in the memory of a process, or from its file.

The dynamic linker needs the exported symbols at run time, so they are in memory: also where the file was
replaced since, or lies in a container that cannot be entered. A program that is linked statically has no such
table; where it was not stripped, its file has one.

System V ABI, "Dynamic Linking"; the GNU hash section as in glibc's elf/dl-lookup.c (sysdeps' do_lookup_x).
"""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Callable, Iterable
from typing import Final

from loopcanary.late_dataclass import dataclass
from loopcanary.outside.memory import MappedFile, Memory

Read = Callable[[int, int], bytes | None]

_HEADER: Final = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT: Final = struct.Struct("<IIQQQQQQ")
_SECTION: Final = struct.Struct("<IIQQQQIIQQ")
_DYNAMIC: Final = struct.Struct("<qQ")
_SYMBOL: Final = struct.Struct("<IBBHQQ")
_GNU_HASH: Final = struct.Struct("<4I")
_WORD: Final = struct.Struct("<I")

_LOAD, _DYNAMIC_SEGMENT = 1, 2
_HASH, _STRINGS, _SYMBOLS, _GNU_HASH_TABLE = 4, 5, 6, 0x6FFFFEF5
_SYMBOL_TABLE = 2  # type of a section
_OBJECT, _NO_TYPE = 1, 0
_SEGMENTS_MAX = 128
_SECTIONS_MAX = 512
_ENTRIES_MAX = 256
_CHAIN_MAX = 4096
_BUCKETS_MAX = 1 << 24
_TABLE_BYTES_MAX = 64 << 20

MACHINES: Final = {"x86_64": 62, "amd64": 62, "aarch64": 183, "arm64": 183}


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """A program or library in memory. `bias`: from its own addresses to those of the process."""

    machine: int
    is_64_bit: bool
    bias: int
    end: int
    dynamic: int | None
    """The address of its dynamic section."""


def read_image(memory: Memory, file: MappedFile) -> Image | None:
    """The image of a mapped file; None: it is not one."""
    head = memory.read(file.base, _HEADER.size)
    if head is None or head[:4] != b"\x7fELF" or head[5] != (1 if sys.byteorder == "little" else 2):
        return None
    if head[4] != 2:
        return Image(
            machine=int.from_bytes(head[18:20], sys.byteorder),
            is_64_bit=False,
            bias=0,
            end=file.end,
            dynamic=None,
        )
    fields = _HEADER.unpack(head)
    segments_at, entry_bytes, count = fields[5], fields[9], fields[10]
    if entry_bytes != _SEGMENT.size or count > _SEGMENTS_MAX:
        return None
    table = memory.read(file.base + segments_at, entry_bytes * count)
    if table is None:
        return None
    segments = list(_SEGMENT.iter_unpack(table))
    loads = [(offset, address, size) for kind, _, offset, address, _, _, size, _ in segments if kind == _LOAD]
    if not loads:
        return None
    first_offset, first_address, _ = loads[0]
    bias = file.base - (first_address - first_offset)
    dynamic = next((bias + address for kind, _, _, address, *_ in segments if kind == _DYNAMIC_SEGMENT), None)
    end = bias + max(address + size for _, address, size in loads)
    return Image(machine=fields[2], is_64_bit=True, bias=bias, end=end, dynamic=dynamic)


def exported(memory: Memory, file: MappedFile, image: Image, names: Iterable[str]) -> dict[str, int]:
    """Addresses, in the process, of the names that the image exports as data."""
    tables = _tables(memory, file, image)
    strings, symbols = tables.get(_STRINGS), tables.get(_SYMBOLS)
    if strings is None or symbols is None:
        return {}
    found = {}
    for name in names:
        for index in _candidates(memory, tables, name):
            value = _value(memory, symbols + index * _SYMBOL.size, strings, name)
            if value is not None:
                found[name] = image.bias + value
                break
    return found


def _tables(memory: Memory, file: MappedFile, image: Image) -> dict[int, int]:
    """The addresses of the tables in the dynamic section."""
    tables: dict[int, int] = {}
    at = image.dynamic
    for _ in range(_ENTRIES_MAX if at is not None else 0):
        assert at is not None
        entry = memory.words(_DYNAMIC, at)
        if entry is None or entry[0] == 0:
            break
        tag, value = entry
        if tag in (_HASH, _STRINGS, _SYMBOLS, _GNU_HASH_TABLE):
            # glibc writes addresses of the process there, musl leaves those of the file.
            is_absolute = file.base <= value < image.end
            tables[tag] = value if is_absolute else image.bias + value
        at += _DYNAMIC.size
    return tables


def _candidates(memory: Memory, tables: dict[int, int], name: str) -> Iterable[int]:
    """Numbers of symbols that may have the name."""
    if _GNU_HASH_TABLE in tables:
        return _by_gnu_hash(memory, tables[_GNU_HASH_TABLE], name)
    if _HASH in tables:
        return _by_hash(memory, tables[_HASH], name)
    return ()


def _by_gnu_hash(memory: Memory, table: int, name: str) -> Iterable[int]:
    head = memory.words(_GNU_HASH, table)
    if head is None:
        return
    buckets, first, bloom_words, _ = head
    if not 0 < buckets <= _BUCKETS_MAX or bloom_words > _BUCKETS_MAX:
        return
    wanted = _gnu_hash(name)
    buckets_at = table + _GNU_HASH.size + 8 * bloom_words
    chain_at = buckets_at + 4 * buckets
    bucket = memory.words(_WORD, buckets_at + 4 * (wanted % buckets))
    index = bucket[0] if bucket else 0
    for _ in range(_CHAIN_MAX if index >= first else 0):
        word = memory.words(_WORD, chain_at + 4 * (index - first))
        if word is None:
            return
        if word[0] | 1 == wanted | 1:
            yield index
        if word[0] & 1:
            return
        index += 1


def _gnu_hash(name: str) -> int:
    value = 5381
    for byte in name.encode():
        value = (value * 33 + byte) & 0xFFFFFFFF
    return value


def _by_hash(memory: Memory, table: int, name: str) -> Iterable[int]:
    head = memory.words(struct.Struct("<2I"), table)
    if head is None or not 0 < head[0] <= _BUCKETS_MAX:
        return
    at = table + 8 + 4 * (_elf_hash(name) % head[0])
    for _ in range(_CHAIN_MAX):
        word = memory.words(_WORD, at)
        if word is None or word[0] == 0 or word[0] >= head[1]:
            return
        yield word[0]
        at = table + 8 + 4 * (head[0] + word[0])


def _elf_hash(name: str) -> int:
    value = 0
    for byte in name.encode():
        value = (value << 4) + byte
        value ^= (value & 0xF0000000) >> 24
        value &= 0x0FFFFFFF
    return value


def _value(memory: Memory, at: int, strings: int, name: str) -> int | None:
    symbol = memory.words(_SYMBOL, at)
    if symbol is None or not _is_data(symbol):
        return None
    text = name.encode() + b"\0"
    return symbol[4] if memory.read(strings + symbol[0], len(text)) == text else None


def _is_data(symbol: tuple[int, ...]) -> bool:
    _, info, _, section, value, _ = symbol
    return section != 0 and value != 0 and info & 0xF in (_OBJECT, _NO_TYPE)


# ---- the file --------------------------------------------------------------------------------------


def in_file(path: str, image: Image, names: Iterable[str]) -> dict[str, int]:
    """The same from the symbol table of the image's file, if it was not stripped."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return {}
    try:
        return _from_sections(lambda at, size: _read_at(descriptor, at, size), image.bias, set(names))
    finally:
        os.close(descriptor)


def _read_at(descriptor: int, at: int, size: int) -> bytes | None:
    if size > _TABLE_BYTES_MAX or at >= 1 << 62:
        return None
    try:
        data = os.pread(descriptor, size, at)
    except OSError:
        return None
    return data if len(data) == size else None


def _from_sections(read: Read, bias: int, names: set[str]) -> dict[str, int]:
    head = read(0, _HEADER.size)
    if head is None or head[:5] != b"\x7fELF\x02":
        return {}
    fields = _HEADER.unpack(head)
    sections_at, entry_bytes, count = fields[6], fields[11], fields[12]
    table = read(sections_at, entry_bytes * count) if count <= _SECTIONS_MAX else None
    if table is None or entry_bytes != _SECTION.size:
        return {}
    sections = list(_SECTION.iter_unpack(table))
    wanted = {name.encode(): name for name in names}
    for _, kind, _, _, offset, size, link, *_ in sections:
        if kind != _SYMBOL_TABLE or link >= len(sections):
            continue
        symbols = read(offset, size - size % _SYMBOL.size)
        strings = read(sections[link][4], sections[link][5])
        if symbols is not None and strings is not None:
            return _named(symbols, strings, wanted, bias)
    return {}


def _named(symbols: bytes, strings: bytes, wanted: dict[bytes, str], bias: int) -> dict[str, int]:
    found = {}
    longest = max(map(len, wanted), default=0) + 1
    for symbol in _SYMBOL.iter_unpack(symbols):
        if _is_data(symbol):
            text = strings[symbol[0] : symbol[0] + longest].partition(b"\0")[0]
            if text in wanted:
                found[wanted[text]] = bias + symbol[4]
    return found
