from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from zoo import catalogue, loops, trial, watchers
from zoo.catalogue import Place

from loopcanary.model.stall import Cause

KINDS = catalogue.read_all()


def written(folder: Path, text: str) -> Path:
    path = folder / "kind.py"
    path.write_text(text)
    return path


def test_there_are_enough_kinds_and_controls():
    assert len([kind for kind in KINDS if not kind.control]) >= 120
    assert len({name for kind in KINDS for name in kind.needs}) >= 28
    assert len([kind for kind in KINDS if kind.control]) >= 10
    assert len([kind for kind in KINDS if kind.killed]) >= 3


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_kind_says_what_is_true_of_it(kind):
    assert set(kind.causes) <= {cause.value for cause in Cause} - {Cause.UNKNOWN.value}
    assert set(kind.loops) <= set(loops.ALL)
    assert set(kind.watchers) <= set(watchers.names())
    # Every stall but the machine's own, and that of freeing what nobody asks for, has a guilty line.
    nowhere = kind.causes == ("host",) or kind.name == "task_end_frees"
    assert kind.control or nowhere or kind.culprits or kind.holders
    assert kind.control or re.search(
        r"measured\(\)|\bbegin\(\)|stage\.begin|call_soon\(begin\)", kind.path.read_text()
    )


def test_what_kinds_need_is_pinned(tree):
    lines = (tree / "benchmarks/zoo/requirements.txt").read_text().splitlines()
    pinned = {line.partition("==")[0].partition("[")[0] for line in lines if "==" in line}
    assert {name for kind in KINDS for name in kind.needs} <= pinned


def test_a_kind_whose_library_is_missing_is_skipped_in_words():
    kind = replace(KINDS[0], needs=("no-such-library",))
    found = trial.play(kind, "loopcanary", "asyncio")
    assert (found.outcome, found.note) == ("skipped", "no-such-library is not installed")


def test_marked_lines_are_read_with_their_functions(tmp_path):
    source = (
        '"""What it is.\n\nMore."""\n'
        'EXPECT = {"cause": ["lock"], "thread": ["keeper"], "loops": ["asyncio"]}\n'
        "def hold():\n"
        "    pause()  # <- holder\n"
        "def outer():\n"
        "    async def inner():\n"
        "        one()  # <- culprit\n"
        "        two()  # <- culprit\n"
    )
    kind = catalogue.read(written(tmp_path, source))
    assert kind.summary == "What it is."
    assert kind.causes == ("lock",)
    assert kind.loops == ("asyncio",)
    assert kind.culprits == (Place("inner", frozenset({9, 10})),)
    assert kind.holders == (Place("hold", frozenset({6})),)
    assert kind.threads == ("keeper",)


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ('EXPECT = {"cause": ["lock"]}', "docstring"),
        ('"""A."""', "no EXPECT"),
        ('"""A."""\nEXPECT = {"cuase": ["lock"]}', "cuase"),
        ('"""A."""\nEXPECT = {}', "cause"),
        ('"""A."""\nEXPECT = {"control": True, "cause": ["lock"]}', "cause"),
        ('"""A."""\nEXPECT = {"control": True}\nx()  # <- culprit', "culprit"),
        ('"""A."""\nEXPECT = {"cause": ["lock"]}\nx()  # <- holder', "thread"),
    ],
)
def test_a_kind_that_says_too_little_is_refused(tmp_path, source, why):
    with pytest.raises(ValueError, match=why):
        catalogue.read(written(tmp_path, source))
