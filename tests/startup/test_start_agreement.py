"""flight/beside/start.py and native/core/start/start_format.h state the same facts: the compiler is asked."""

from __future__ import annotations

import re

import pytest
from tests.flight.asked_compiler import said_by_compiler, said_by_reader

from loopcanary.flight.beside import start as layout

RECORDS = (layout.HEADER, layout.IMPORT)
NUMBERS = {
    "LC_START_VERSION": layout.VERSION,
    "LC_START_BYTE_ORDER": layout.BYTE_ORDER,
    "LC_START_HEADER_BYTES": layout.IMPORTS_OFFSET,
    "LC_START_IMPORTS_MAX": layout.IMPORTS_MAX,
    "LC_START_MARK_ROOM": layout.MARK_ROOM,
    "LC_START_MARKS": len(layout.MARKS),
    "LC_START_LISTENING": layout.MARKS.index("listening"),
    "LC_START_OVER": layout.MARKS.index("over"),
}


def test_every_offset_and_number_is_the_compilers(tree, tmp_path):
    said = said_by_compiler(
        tree, tmp_path, "core/start/start_format.h", magic="LC_START_MAGIC", records=RECORDS, numbers=NUMBERS
    )
    assert said == said_by_reader(magic=layout.MAGIC, records=RECORDS, numbers=NUMBERS)


def test_every_field_is_documented(tree):
    page = tree / "docs/internals/start-format.md"
    if not page.exists():
        pytest.skip("no docs here: this is an installed package")
    documented = set(re.findall(r"`(\w+)`", page.read_text(encoding="utf-8")))
    assert {*layout.HEADER.offsets, *layout.IMPORT.offsets, *layout.MARKS} <= documented


def test_no_bytes_break_the_reader(tmp_path):
    whole = bytearray(layout.IMPORTS_OFFSET + 2 * layout.IMPORT.size)
    whole[: len(layout.MAGIC)] = layout.MAGIC
    whole[8:16] = layout.VERSION.to_bytes(4, "little") + layout.BYTE_ORDER.to_bytes(4, "little")
    whole[16:] = b"\xff" * (len(whole) - 16)
    file = tmp_path / "start"
    for size in (0, 100, layout.IMPORTS_OFFSET, layout.IMPORTS_OFFSET + 1, len(whole)):
        file.write_bytes(whole[:size])
        notes = layout.read_start(str(file))
        assert (notes is None) == (size < layout.IMPORTS_OFFSET)
    assert notes is not None
    assert len(notes.imports) == 2
    assert not notes.is_short
