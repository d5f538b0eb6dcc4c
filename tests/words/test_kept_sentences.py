"""Sentences on their way through a store and a bundle: kept as codes, read in the words of today."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.building.issues import JANK
from tests.building.stalls import SESSION, STALL
from tests.bundles.samples import bundled, taken

from loopcanary.model.search import IssueQuery
from loopcanary.store import Retention, Store
from loopcanary.words import sentences
from loopcanary.words.sentences import TEMPLATES, say

PLACE = say("title:place", function="f", file="a.py", line=3)
TITLE = say("title:what", what=say("title:sleep"), place=PLACE)
ADVICE = say("try:time.sleep", call="time.sleep(1)")
SAID = replace(STALL, title=TITLE, evidence=(say("starting"), "as a plugin put it"), advice=ADVICE)
LATE = replace(JANK, advice=ADVICE)
MENDED = {"title:sleep": "asleep", "starting": "Not yet started.", "try:time.sleep": "Use {call}."}


def through_a_store(tmp_path: Path):
    store = Store(tmp_path / "store", retention=Retention(age_ns=1 << 62))
    store.put([SESSION], [SAID, LATE])
    found = {one.id: one for one in store.reader.issues(IssueQuery())}
    groups = [group.title for group in store.reader.groups(IssueQuery())]
    store.close()
    return found[SAID.id], found[LATE.id], groups


def through_a_bundle(tmp_path: Path):
    found = taken(tmp_path / "a.zip", bundled(stalls=(SAID,), issues=(LATE,)))
    return found.stalls[0], found.issues[0], [found.stalls[0].title]


@pytest.mark.parametrize("through", [through_a_store, through_a_bundle])
def test_a_better_wording_mends_what_was_kept(through, tmp_path, monkeypatch):
    monkeypatch.setattr(sentences, "TEMPLATES", {**TEMPLATES, **MENDED})
    stall, late, titles = through(tmp_path)
    assert stall.title == "asleep in f (a.py:3)"
    assert stall.evidence == ("Not yet started.", "as a plugin put it")
    assert stall.advice == late.advice == "Use time.sleep(1)."
    assert "asleep in f (a.py:3)" in titles


@pytest.mark.parametrize("through", [through_a_store, through_a_bundle])
def test_sentences_come_back_as_they_were_kept(through, tmp_path):
    stall, late, _ = through(tmp_path)
    assert (stall, late) == (SAID, LATE)
    assert stall.title.values["what"].code == "title:sleep"
