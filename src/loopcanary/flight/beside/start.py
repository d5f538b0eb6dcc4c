"""The file of a start, beside a flight file: native/core/start/start_format.h. Trusts no byte of it."""

from __future__ import annotations

import struct
from contextlib import suppress
from itertools import islice
from typing import Final

from loopcanary.flight.format import Layout
from loopcanary.flight.header import bounded
from loopcanary.flight.source import FlightError, open_source
from loopcanary.model.issues.startup import CodeOrigin, NotedImport, StartNotes

MAGIC: Final = b"LCSTART\0"
VERSION: Final = 2
BYTE_ORDER: Final = 0x01020304
IMPORTS_OFFSET: Final = 4096
IMPORTS_MAX: Final = 2048
MARKS: Final = (
    *("hook", "watched", "site_over", "main", "ready"),
    *("listening", "idle", "answered", "frame", "over"),
)
MARK_ROOM: Final = 16

HEADER: Final = Layout(
    "lc_start_header",
    f"""
    8s magic
    I version byte_order
    Q file_bytes tid boot_offset_ns process_start tick_ns run_ns
    {8 * MARK_ROOM}s marks
    Q imports major_faults collections gc_ns unfrozen
    """,
)
IMPORT: Final = Layout(
    "lc_start_import",
    """
    Q begin_ns end_ns bytes
    I depth
    H how failed
    Q major_faults
    64s name
    """,
)
_ORIGINS: Final = {1: CodeOrigin.CACHED, 2: CodeOrigin.COMPILED}
_TICK_NS_MAX: Final = 1_000_000_000


def read_start(path: str) -> StartNotes | None:
    """The notes in the file; None: there is none, or none that can be read."""
    with suppress(FlightError):
        source = open_source(path)
        try:
            content = source.read(0, min(source.size, IMPORTS_OFFSET + IMPORTS_MAX * IMPORT.size))
        finally:
            source.close()
        return _notes(content)
    return None


def _notes(content: bytes) -> StartNotes | None:
    if len(content) < IMPORTS_OFFSET:
        return None
    header = HEADER.read(content)
    if (header["magic"], header["version"], header["byte_order"]) != (MAGIC, VERSION, BYTE_ORDER):
        return None
    at = dict(zip(MARKS, struct.unpack_from(f"<{len(MARKS)}Q", header["marks"]), strict=True))
    step_ns = min(header["tick_ns"], _TICK_NS_MAX)
    process_ns = header["process_start"] * step_ns - header["boot_offset_ns"]
    watched_ns = bounded(at["watched"])
    if not 0 < process_ns <= watched_ns:
        process_ns = bounded(at["hook"]) or watched_ns
    is_short = header["file_bytes"] == IMPORTS_OFFSET
    imports = [
        _import(one)
        for one in islice(IMPORT.every(content[IMPORTS_OFFSET:]), min(header["imports"], IMPORTS_MAX))
    ]
    return StartNotes(
        process_ns=process_ns,
        step_ns=step_ns,
        run_ns=_moment(header["run_ns"]),
        hook_ns=_moment(at["hook"]),
        watched_ns=watched_ns,
        site_over_ns=_moment(at["site_over"]),
        main_ns=_moment(at["main"]),
        ready_ns=_moment(at["ready"]),
        listening_ns=_moment(at["listening"]),
        idle_ns=_moment(at["idle"]),
        answered_ns=_moment(at["answered"]),
        frame_ns=_moment(at["frame"]),
        over_ns=_moment(at["over"]),
        major_faults=bounded(header["major_faults"]),
        collections=bounded(header["collections"]),
        gc_ns=bounded(header["gc_ns"]),
        is_unfrozen=header["unfrozen"] == 1,
        imports=tuple(one for one in imports if one.begin_ns),
        left_out=0 if is_short else bounded(max(0, header["imports"] - IMPORTS_MAX)),
        is_short=is_short,
    )


def _moment(ns: int) -> int | None:
    return bounded(ns) if ns else None


def _import(one: dict[str, int | bytes]) -> NotedImport:
    name = one["name"]
    assert isinstance(name, bytes)
    number = {key: value for key, value in one.items() if isinstance(value, int)}
    return NotedImport(
        name=name.rstrip(b"\0").decode("utf-8", "replace"),
        depth=number["depth"],
        begin_ns=bounded(number["begin_ns"]),
        end_ns=_moment(number["end_ns"]),
        origin=_ORIGINS.get(number["how"], CodeOrigin.OTHER),
        bytes_read=bounded(number["bytes"]),
        major_faults=bounded(number["major_faults"]),
    )
