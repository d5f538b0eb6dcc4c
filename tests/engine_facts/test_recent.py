from __future__ import annotations

from dataclasses import replace

import pytest
from tests.building.stalls import STALL, stall

from loopcanary.model import StackFrame, WeightedStack
from loopcanary.pipeline import pipeline as recent_module
from loopcanary.pipeline.pipeline import Recent


def frames(name, count):
    return tuple(
        StackFrame(function=f"{name}{i}", qualname=f"{name}{i}", file="app.py", line=i, in_app=True)
        for i in range(count)
    )


def with_stack(number, name, count=10):
    return stall(id=f"s1-{number}", stacks=(WeightedStack(weight_ns=number, frames=frames(name, count)),))


def test_what_was_added_comes_back_oldest_first():
    recent = Recent()
    added = [STALL, with_stack(1, "a"), with_stack(2, "b"), with_stack(3, "a")]
    for one in added:
        recent.add(one)
    assert list(recent) == added


def test_equal_stacks_and_frames_are_held_once():
    recent = Recent()
    for number, count in enumerate((10, 10, 5)):
        recent.add(with_stack(number, "a", count))
    first, second, third = (one.stacks[0].frames for one in recent)
    assert first is second
    assert all(left is right for left, right in zip(first, third, strict=False))


def test_the_oldest_go_where_there_are_too_many(monkeypatch):
    monkeypatch.setattr(recent_module, "_STALLS_MAX", 3)
    recent = Recent()
    for number in range(5):
        recent.add(with_stack(number, "a"))
    assert [one.id for one in recent] == ["s1-2", "s1-3", "s1-4"]


def test_the_oldest_go_where_their_stacks_are_too_many(monkeypatch):
    monkeypatch.setattr(recent_module, "_FRAMES_MAX", 100)
    recent = Recent()
    for number in range(50):
        recent.add(with_stack(number, "the same", 60))
    assert len(recent) == 50
    for number in range(50, 55):
        recent.add(with_stack(number, f"another {number} ", 40))
    assert [one.id for one in recent][-2:] == ["s1-53", "s1-54"]
    assert sum(len(found) for found in {one.stacks[0].frames for one in recent}) <= 100
    recent.add(with_stack(99, "larger than all ", 200))
    assert [one.id for one in recent] == ["s1-99"]


@pytest.mark.parametrize("limit", [1, 10, 1_000])
def test_what_is_common_is_bounded(monkeypatch, limit):
    monkeypatch.setattr(recent_module, "_COMMON_MAX", limit)
    recent = Recent()
    for number in range(100):
        recent.add(with_stack(number, f"f{number}"))
    assert len(recent._common) <= limit + 20
    assert len(recent) == 100


def test_what_an_interceptor_put_in_is_kept_as_it_is():
    recent = Recent()
    changed = replace(STALL, evidence=["a", "list"])
    recent.add(changed)
    assert list(recent) == [changed]
