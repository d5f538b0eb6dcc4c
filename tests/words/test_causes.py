"""A cause is in every place that speaks of causes."""

from __future__ import annotations

from pathlib import Path

import pytest

import loopcanary.ui
from loopcanary.model import Cause
from loopcanary.words.causes import cause_words

STYLE = Path(loopcanary.ui.__file__).parent / "static" / "loopcanary.css"


@pytest.mark.parametrize("cause", Cause, ids=lambda cause: cause.value)
def test_a_cause_has_words_a_colour_and_a_place_in_the_docs(cause: Cause, tree: Path) -> None:
    assert cause_words(cause)
    has_colour = f".c-{cause.value} " in STYLE.read_text("utf-8")
    assert has_colour or cause is Cause.UNKNOWN  # the colour of all others
    for page in ("docs/glossary.md", "docs/internals/diagnosis.md"):
        assert f"| {cause.value} |" in (tree / page).read_text("utf-8"), page
