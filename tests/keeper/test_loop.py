"""The keeper's seats and its end."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
from tests.keeper.test_kept_store import Beside, Folder, S, needs_pidfd

from loopcanary import keeper as place
from loopcanary.keeper.kept_store import KeptStore
from loopcanary.keeper.loop import Keeper
from loopcanary.keeper.seat import APART, LEFT_WALL_NS, Seat


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


@needs_pidfd
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


class Child:
    """The keeper of a program whose child it is: how many turns of a second it takes until it ends."""

    def __init__(self, kept: KeptStore, files: Folder, asked: Asked) -> None:
        self.program = Beside(os.getppid())
        files.there = {"living": self.program}
        asked.then = [self.turn] * 200
        asked.wake()
        self.turns = 0
        self.waits_from: int | None = None
        self.ends_hang: int | None = None
        self._kept, self._asked = kept, asked

    def turn(self) -> bool:
        self.turns += 1
        if self.turns == self.ends_hang:
            self.program.due_ns = None
        return False

    def lives(self, parent: int | None = None) -> int:
        keeper = Keeper(
            [self._kept],
            self._asked,
            print,
            print,
            linger_ns=1000 * S,
            parent=lambda: os.getppid() if parent is None else parent,
            waits_for_children=lambda _: self.waits_from is not None and self.turns >= self.waits_from,
            monotonic_ns=lambda: self.turns * S,
        )
        keeper._wait = set  # type: ignore[method-assign]
        keeper.run()
        self._kept.end()
        return self.turns


def test_the_child_of_a_program_ends_after_a_minute(kept: KeptStore, files: Folder, asked: Asked):
    assert Child(kept, files, asked).lives() == 60
    assert not asked.is_end


def test_it_ends_sooner_for_a_program_that_waits_for_its_children(
    kept: KeptStore, files: Folder, asked: Asked
):
    child = Child(kept, files, asked)
    child.waits_from = 2
    assert child.lives() == 5


def test_it_does_not_end_while_there_is_something_to_do(kept: KeptStore, files: Folder, asked: Asked):
    child = Child(kept, files, asked)
    child.program.due_ns, child.waits_from, child.ends_hang = 1, 0, 70
    assert child.lives() == 74


def test_one_that_is_no_child_of_a_program_stays(
    kept: KeptStore, files: Folder, asked: Asked, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("loopcanary.keeper.loop._FAREWELL_NS", 0)
    assert Child(kept, files, asked).lives(parent=os.getpid()) == 200
    assert asked.is_end


class Farewell:
    """A program that ends some turns after its keeper was asked to, or never."""

    def __init__(self, files: Folder, asked: Asked, turns: int | None) -> None:
        self.beside = Beside(due_ns=1)  # is looked at in each turn
        files.there = {"living": self.beside}
        asked.then = [self.ask, *[self.turn] * 100]
        asked.wake()
        self._asked, self._turns = asked, turns

    def ask(self) -> bool:
        self._asked.is_end = True
        return False

    def turn(self) -> bool:
        if self._turns is not None:
            self._turns -= 1
            self.beside.over = self._turns <= 0
        return False


def clock(step_ns: int) -> Callable[[], int]:
    """Goes on by a step at each look."""
    return count(0, step_ns).__next__


def test_one_that_is_asked_to_end_waits_for_what_ends_with_it(
    kept: KeptStore, files: Folder, asked: Asked, store: Path
):
    Farewell(files, asked, turns=3)
    Keeper([kept], asked, print, print, linger_ns=S, monotonic_ns=clock(S // 100)).run()
    assert files.taken == ["living"]
    kept.end()
    assert not is_short(store)


def test_one_that_is_asked_to_end_does_not_wait_for_long(
    kept: KeptStore, files: Folder, asked: Asked, store: Path
):
    Farewell(files, asked, turns=None)
    Keeper([kept], asked, print, print, linger_ns=S, monotonic_ns=clock(S // 10)).run()
    assert files.taken == []
    kept.end()
    assert is_short(store), "what is watched still starts one that stays no longer than it"


def test_one_that_a_person_started_ends_at_once(kept: KeptStore, files: Folder, asked: Asked):
    Farewell(files, asked, turns=3)
    Keeper([kept], asked, print, print, linger_ns=None, monotonic_ns=clock(S // 100)).run()
    assert files.taken == []


def asked_for(store: Path, linger_ns: int | None, files: Folder, asked: Asked) -> KeptStore:
    """A keeper that serves a program while another one asks for its seat, again and again."""
    kept = KeptStore(Seat(str(store)), files, print, {APART: linger_ns is not None})
    other = Seat(str(store))
    asked.then = [lambda: other.ask_for() and False] * 20
    for _ in asked.then:
        asked.wake()
    Keeper([kept], asked, print, print, linger_ns=linger_ns, monotonic_ns=clock(S // 100)).run()
    return kept


@needs_pidfd
@pytest.mark.parametrize(("due_ns", "waits"), [(None, False), (9 * S, True)], ids=["idle", "busy"])
def test_one_that_a_program_started_leaves_its_seat_to_one_that_asks(
    store: Path, files: Folder, asked: Asked, due_ns: int | None, waits: bool
):
    files.there = {"living": Beside(os.getpid(), due_ns=due_ns)}
    kept = asked_for(store, S, files, asked)
    assert not asked.is_end
    assert (len(files.handed_on) > 3) == waits, "what it has at hand comes first"
    kept.end()
    mark = Path(place.path_in_memory(str(store), place.MARK))
    assert mark.exists(), "no program starts one meanwhile"
    mark.unlink()


def test_one_that_a_person_started_keeps_its_seat(store: Path, files: Folder, asked: Asked):
    files.there = {"living": Beside()}
    asked_for(store, None, files, asked).end()
    assert asked.is_end


def is_short(store: Path) -> bool:
    seat = Seat(str(store))
    assert seat.take()
    seat.give_back()
    return seat.is_short


def test_a_short_one_ends_with_what_it_watches(kept: KeptStore, files: Folder, asked: Asked, store: Path):
    place.prepare(str(store))
    Path(place.path(str(store), place.STATUS)).write_text(json.dumps({LEFT_WALL_NS: time.time_ns()}))
    files.there = {"dead": None}
    run(kept, asked, linger_ns=1000 * S)
    assert files.taken == ["dead"]
    assert not asked.is_end
    assert not is_short(store), "it left nothing"


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

    def look(now_ns: int) -> int | None:
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
    assert said == [f"{store}: another keeper is running; this keeper waits"]


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
