"""calls_format.py and native/core/methods/calls_format.h state the same facts: the compiler is asked."""

from __future__ import annotations

import re

import pytest
from tests.flight.asked_compiler import said_by_compiler, said_by_reader

from loopcanary.flight.beside import calls_format as layout
from loopcanary.model.method_map import NUMBER_MAX

RECORDS = (layout.HEADER, layout.OPEN, layout.SLOW)
NUMBERS = {
    "LC_CALLS_VERSION": layout.VERSION,
    "LC_CALLS_BYTE_ORDER": layout.BYTE_ORDER,
    "LC_CALLS_OPEN_MAX": layout.OPEN_MAX,
    "LC_CALLS_MARKS": layout.MARKS,
    "LC_CALLS_MARK_WORDS": layout.MARK_WORDS,
    "LC_CALLS_SLOW_OFFSET": layout.SLOW_OFFSET,
    "LC_CALLS_SLOW_MAX": layout.SLOW_MAX,
    "LC_CALLS_OPEN_OFFSET": layout.OPEN_OFFSET,
    "LC_CALLS_MARKS_OFFSET": layout.MARKS_OFFSET,
    "LC_CALLS_WORDS_OFFSET": layout.WORDS_OFFSET,
    "LC_CALLS_WORK": NUMBER_MAX + 1,
    "LC_CALLS_WORK_NONE": layout.WORK,
    "LC_CALLS_WORK_OTHER": layout.WORK_OTHER,
    "LC_CALLS_TIME_BITS": layout.TIME_BITS,
}


def test_every_offset_and_number_is_the_compilers(tree, tmp_path):
    said = said_by_compiler(
        tree,
        tmp_path,
        "core/methods/calls_format.h",
        magic="LC_CALLS_MAGIC",
        records=RECORDS,
        numbers=NUMBERS,
    )
    assert said == said_by_reader(magic=layout.MAGIC, records=RECORDS, numbers=NUMBERS)


def test_every_field_is_documented(tree):
    page = tree / "docs/internals/calls-format.md"
    if not page.exists():
        pytest.skip("no docs here: this is an installed package")
    documented = set(re.findall(r"`(\w+)`", page.read_text(encoding="utf-8")))
    assert {*layout.HEADER.offsets, *layout.OPEN.offsets, *layout.SLOW.offsets} <= documented
