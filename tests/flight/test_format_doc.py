"""docs/internals/flight-format.md describes every field."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.flight.test_format_agreement import LAYOUTS

from loopcanary.flight import format as layout


@pytest.fixture(scope="module")
def documented(tree: Path) -> set[str]:
    page = tree / "docs/internals/flight-format.md"
    if not page.exists():
        pytest.skip("no docs here: this is an installed package")
    return set(re.findall(r"`(\w+)`", page.read_text(encoding="utf-8")))


@pytest.mark.parametrize("record", LAYOUTS, ids=lambda record: record.name)
def test_every_field_is_documented(documented, record):
    assert set(record.offsets) <= documented
    assert record.name in documented


def test_every_counter_is_documented(documented):
    assert set(layout.COUNTERS) <= documented


def test_no_field_is_documented_that_does_not_exist(documented, tree):
    structures = {record.name for record in LAYOUTS}
    fields = {field for record in LAYOUTS for field in record.offsets}
    others = {"LCFLIGHT", "0x01020304", "_ns", "expect", "some"}

    assert documented <= structures | fields | set(layout.COUNTERS) | others


def test_the_page_is_about_this_version(tree):
    text = (tree / "docs/internals/flight-format.md").read_text(encoding="utf-8")

    assert f"describes format **{layout.VERSION}**" in text
