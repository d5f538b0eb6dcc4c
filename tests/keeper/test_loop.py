"""The keeper's seats and its end."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.keeper.test_kept_store import Beside, Folder

from loopcanary.keeper.kept_store import KeptStore
from loopcanary.keeper.loop import Keeper
from loopcanary.keeper.seat import Seat


class Asked:
    """Signals: each time the keeper has been woken it asks the test what comes."""

    def __init__(self) -> None:
        self.is_end = False
        self.descriptor, self._wakes = os.pipe()
        self.then: list[Callable[[], bool]] = []
        """Each says whether folders have changed; behind the last one the end is asked for."""

    def wake(self) -> None:
        os.write(self._wakes, b"!")

    def folders_changed(self) -> bool:
        if not self.then:
            self.is_end = True
            return False
        return self.then.pop(0)()

    def forgo_deadline(self) -> None: ...

    def close(self) -> None:
        os.close(self.descriptor)
        os.close(self._wakes)


@pytest.fixture
def asked() -> Iterator[Asked]:
    made = Asked()
    yield made
    made.close()


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def files(store: Path) -> Folder:
    return Folder(store / "flight")


@pytest.fixture
def kept(store: Path, files: Folder) -> KeptStore:
    return KeptStore(Seat(str(store)), files, print, {})


def run(kept: KeptStore, asked: Asked, linger_ns: int | None = 0) -> list[str]:
    said: list[str] = []
    keeper = Keeper([kept], asked, lambda _: None, said.append, linger_ns=linger_ns)
    keeper.run()
    keeper.end()
    return said


def test_it_ends_when_nothing_is_watched(kept: KeptStore, files: Folder, asked: Asked, store: Path):
    files.there = {"dead": None}
    run(kept, asked)
    assert files.taken == ["dead"]
    other = Seat(str(store))
    assert other.take()
    other.give_back()


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs pidfd_open")
def test_it_stays_until_the_last_program_has_ended(kept: KeptStore, files: Folder, asked: Asked):
    program = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    beside = Beside(program.pid)
    files.there = {"living": beside}

    def end() -> bool:
        beside.over = True
        program.communicate(b"\n")
        return False

    asked.then = [end, lambda: False, lambda: False]
    asked.wake()
    run(kept, asked)
    assert files.taken == ["living"]
    assert not asked.is_end


def test_a_program_that_begins_at_its_end_is_seen(kept: KeptStore, files: Folder, asked: Asked):
    """It has found no bell to ring any more, or one that nobody hears."""
    beside = Beside()
    seen_without_a_seat = []

    def names() -> list[str]:
        if kept.seat.bell is None and not seen_without_a_seat:
            seen_without_a_seat.append(True)
            files.there = {"late": beside}
        return list(files.there)

    files.names = names  # type: ignore[method-assign]

    def look(now_ns: int, *, is_rung: bool) -> int | None:
        beside.over = kept.seat.bell is not None
        return now_ns

    beside.look = look  # type: ignore[method-assign]
    asked.then = [lambda: False] * 10
    run(kept, asked)
    assert files.taken == ["late"]
    assert seen_without_a_seat
    assert not asked.is_end


def test_where_another_one_is_at_work_it_is_not_needed(
    kept: KeptStore, files: Folder, asked: Asked, store: Path
):
    other = Seat(str(store))
    assert other.take()
    files.there = {"dead": None}
    assert run(kept, asked) == []
    assert files.taken == []
    other.give_back()


def test_one_that_a_person_started_waits_for_the_seat(
    kept: KeptStore, files: Folder, asked: Asked, store: Path
):
    other = Seat(str(store))
    assert other.take()
    files.there = {"dead": None}

    def end_the_other() -> bool:
        other.give_back()
        return False

    asked.then = [end_the_other, lambda: False]
    asked.wake()
    monotonic_ns = iter(range(0, 1 << 62, 6_000_000_000))
    said: list[str] = []
    keeper = Keeper(
        [kept], asked, lambda _: None, said.append, linger_ns=None, monotonic_ns=lambda: next(monotonic_ns)
    )
    keeper.run()
    keeper.end()
    assert files.taken == ["dead"]
    assert said == [f"{store}: another keeper is at work; this one waits"]


def test_a_store_that_was_removed_is_made_again(kept: KeptStore, asked: Asked, store: Path):
    def remove() -> bool:
        shutil.rmtree(store)
        return True

    found = []

    def look() -> bool:
        found.append(kept.seat.is_there())
        return False

    asked.then = [look, remove, look]
    asked.wake()
    run(kept, asked, linger_ns=None)
    assert found == [True, True]
