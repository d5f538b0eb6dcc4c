from __future__ import annotations

import asyncio
import json
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest
from tests.building.issues import ISSUES, START_IN_TIME
from tests.building.stalls import SESSION, stall

from loopcanary.model import LagIssue
from loopcanary.store import Store, StoreError
from loopcanary.ui import live
from loopcanary.ui.live import Now, Sight, Watch, events


def watch_of(store: Store, sights: list[Sight]) -> Watch:
    return Watch([store], lambda _: sights[-1], (StoreError,))


def test_a_new_stall_is_news_and_nothing_else_is(filled: Store):
    watch = watch_of(filled, [Sight()])
    first = watch.now()
    watch.again()
    assert watch.now().version == first.version
    filled.put_issue(stall(id="s1-77"))
    watch.again()
    assert watch.now().version != first.version


@pytest.mark.parametrize("issue", [*ISSUES, START_IN_TIME], ids=lambda issue: issue.id)
def test_issues_of_every_kind_are_news_to_pages_that_are_open(filled: Store, issue: LagIssue):
    watch = watch_of(filled, [Sight()])
    first = watch.now()
    filled.put_issue(replace(issue, id="s1-new"))
    watch.again()
    assert watch.now().version != first.version


def test_it_looks_at_most_once_a_second(filled: Store, monkeypatch: pytest.MonkeyPatch):
    looks: list[float] = []
    clock = SimpleNamespace(monotonic=lambda: clock.s, time_ns=time.time_ns)
    monkeypatch.setattr(live, "time", clock)
    watch = Watch([filled], lambda _: looks.append(clock.s) or Sight(), (StoreError,))
    for clock.s in (1_000.0, 1_000.1, 1_000.9, 1_001.0, 1_001.9, 1_002.5):
        watch.now()
    assert looks == [1_000.0, 1_001.0, 1_002.5]


def test_running_programs_keep_it_moving(filled: Store):
    sights = [Sight()]
    watch = watch_of(filled, sights)
    still = watch.now()
    sights.append(Sight(running=(SESSION,), ongoing=(stall(id="s1-5"),)))
    watch.again()
    moved = watch.now()
    assert (moved.running, moved.ongoing) == (1, ("s1-5",))
    assert moved.moving > still.moving
    assert moved.version != still.version


def test_one_store_in_trouble_does_not_hide_the_others(filled: Store, tmp_path):
    def look(store: Store) -> Sight:
        if store is not filled:
            raise StoreError("the disk is full")
        return Sight(running=(SESSION,), notices=("set aside",))

    watch = Watch([Store(tmp_path / "none"), filled], look, (StoreError,))
    now = watch.now()
    assert now.running == 1
    # Each says of which store it is.
    assert set(now.trouble) == {f"{tmp_path / 'none'}: the disk is full", f"{filled.folder}: set aside"}


def test_notices_stay_for_a_while_trouble_while_it_lasts(filled: Store):
    sights = [Sight(notices=("first",), trouble=("locked",))]
    watch = watch_of(filled, sights)
    assert watch.now().trouble == (f"{filled.folder}: first", f"{filled.folder}: locked")
    for number in range(50):
        sights.append(Sight(notices=(f"one more: {number}",)))
        watch.again()
        watch.now()
    assert len(watch.now().trouble) == 20
    assert watch.now().trouble[-1] == f"{filled.folder}: one more: 49"


def told(nows: list[Now], gone_after: int) -> list[str]:
    """What a listener hears while one look after the other gives these."""
    left = list(nows)
    turns = 0

    async def is_gone() -> bool:
        nonlocal turns
        turns += 1
        return turns > gone_after

    async def heard() -> list[str]:
        look = lambda: left.pop(0) if len(left) > 1 else left[0]  # noqa: E731
        return [one async for one in events(look, lambda: False, is_gone, every_s=0)]

    return asyncio.run(heard())


def test_a_listener_hears_of_changes_only():
    heard = told([Now(), Now(), Now(running=1, moving=1), Now(running=1, moving=1), Now()], 5)
    assert [json.loads(one.removeprefix("data: "))["running"] for one in heard] == [0, 1, 0]
    assert all(one.endswith("\n\n") for one in heard)


def test_a_long_silence_is_broken_by_a_comment():
    heard = told([Now()], 40)
    assert [one[0] for one in heard] == ["d", ":", ":"]


def test_the_stream_ends_with_the_server():
    async def never() -> bool:
        return False

    async def heard() -> list[str]:
        return [one async for one in events(Now, lambda: True, never, every_s=0)]

    assert asyncio.run(heard()) == []
