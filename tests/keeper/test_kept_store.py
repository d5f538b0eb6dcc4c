"""What is due for each flight file of a store, by a clock that the test turns."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from loopcanary import keeper as place
from loopcanary.keeper.kept_store import KeptStore, StoreFailure
from loopcanary.keeper.seat import Seat, statuses

S = 1_000_000_000
needs_pidfd = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs pidfd_open")


@dataclass
class Beside:
    """A program: whether it is over, and what it asks for."""

    pid: int | None = None
    over: bool = False
    due_ns: int | None = None
    looks: list[tuple[int, bool]] = field(default_factory=list)
    finishes: list[int] = field(default_factory=list)
    has_more: bool = False
    is_closed: bool = False
    death: Any = None

    def is_over(self) -> bool:
        return self.over

    def look(self, now_ns: int) -> int | None:
        self.looks.append(now_ns)
        return self.due_ns

    def finish(self, now_ns: int) -> None:
        self.finishes.append(now_ns)

    def close(self) -> None:
        self.is_closed = True


@dataclass
class Folder:
    """Flight files by name: a program, None for one that is dead, or an error for one that is broken."""

    folder: Path
    there: dict[str, Beside | Exception | None] = field(default_factory=dict)
    failure: StoreFailure | None = None
    taken: list[str] = field(default_factory=list)
    handed_on: list[int] = field(default_factory=list)
    hand_on_ns: int | None = None
    is_ended: bool = False
    linked: list[str] = field(default_factory=list)

    def begin(self) -> None: ...

    def link(self, name: str) -> bool:
        self.linked.append(name)
        if name == "broken":
            raise OSError
        return True

    def names(self) -> list[str]:
        return list(self.there)

    def open(self, name: str) -> Beside | None:
        found = self.there[name]
        if isinstance(found, Exception):
            raise found
        return found

    def recover(self, name: str, death: Any) -> None:  # noqa: ARG002 - of what life it is does not matter
        if self.failure is not None:
            raise self.failure
        self.taken.append(name)
        found = self.there.get(name)
        if found is None or (isinstance(found, Beside) and found.over):
            self.there.pop(name, None)

    def hand_on(self, now_ns: int) -> int | None:
        self.handed_on.append(now_ns)
        return self.hand_on_ns

    def end(self) -> None:
        self.is_ended = True

    def status(self) -> dict[str, Any]:
        return {"stalls": len(self.taken)}


@pytest.fixture
def files(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "store" / "flight")


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def kept(tmp_path: Path, files: Folder, said: list[str]) -> Iterator[KeptStore]:
    made = KeptStore(Seat(str(tmp_path / "store")), files, said.append, {"pid": 7})
    assert made.begin(0)
    yield made
    made.end()


def turn(kept: KeptStore, now_ns: int, *ready: int) -> None:
    kept.turn(now_ns, ready, changed=True)


def test_a_program_that_rings_is_linked_again(kept: KeptStore, files: Folder):
    bell = os.open(place.bell_path(kept.seat.store), os.O_WRONLY | os.O_NONBLOCK)
    os.write(bell, b"broken\nnew\n")
    os.close(bell)
    assert kept.seat.bell is not None
    turn(kept, 1, kept.seat.bell)
    assert sorted(files.linked) == ["broken", "new"]


def test_what_a_dead_program_left_is_taken_in_at_once(kept: KeptStore, files: Folder):
    files.there = {"dead": None}
    turn(kept, 0)
    assert files.taken == ["dead"]
    turn(kept, 1)
    assert (kept.due_ns(), kept.watched) == (None, 0)


@pytest.fixture
def start() -> Iterator[Callable[[], subprocess.Popen[bytes]]]:
    started = []

    def start() -> subprocess.Popen[bytes]:
        program = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        started.append(program)
        return program

    yield start
    for program in started:
        program.kill()
        program.communicate()


@needs_pidfd
def test_the_end_of_a_program_is_seen_by_its_descriptor(kept: KeptStore, files: Folder, start: Any):
    program = start()
    beside = Beside(program.pid)
    files.there = {"living": beside}
    turn(kept, 0)
    assert (kept.watched, kept.due_ns(), files.taken) == (1, None, [])
    [_, descriptor] = kept.descriptors()
    beside.over = True
    kept.turn(S, (descriptor,), changed=False)
    assert (kept.watched, beside.is_closed, files.taken) == (0, True, ["living"])
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


def test_a_program_without_a_number_is_looked_at_each_second(kept: KeptStore, files: Folder):
    beside = Beside()
    files.there = {"elsewhere": beside}
    turn(kept, 0)
    assert (kept.watched, kept.due_ns()) == (1, S)
    beside.over = True
    kept.turn(S, (), changed=False)
    assert files.taken == ["elsewhere"]


def test_a_broken_file_stops_nothing_for_the_others(kept: KeptStore, files: Folder, said: list[str]):
    files.there = {"a": RuntimeError("it lies"), "b": None, "c": Beside()}
    for now in range(3):
        turn(kept, now)
    assert (files.taken, kept.watched) == (["b"], 1)
    assert said == ["a: RuntimeError: it lies"]


def test_a_file_that_goes_away_is_a_problem_only_if_it_stays_away(
    kept: KeptStore, files: Folder, said: list[str]
):
    files.there = {"a": FileNotFoundError("its calls"), "b": FileNotFoundError("its calls")}
    turn(kept, 0)
    del files.there["b"]
    assert said == []
    for now in range(1, 2_000):
        turn(kept, now * S)
    assert said == ["a: FileNotFoundError: its calls"]


def test_a_broken_file_is_tried_again_and_given_up(kept: KeptStore, files: Folder):
    files.there = {"a": Beside()}
    files.open = lambda _: None  # type: ignore[method-assign]
    files.status = dict  # type: ignore[method-assign]
    times = [0]
    turn(kept, 0)
    while (due_ns := kept.due_ns()) is not None:
        times.append(due_ns)
        kept.turn(due_ns, (), changed=False)
    assert (times[1], len(times)) == (S // 20, 13)
    assert 60 * S < times[-1] < 300 * S


def test_a_file_that_came_to_life_is_watched(kept: KeptStore, files: Folder):
    beside = Beside()
    files.there = {"a": RuntimeError("not yet")}
    turn(kept, 0)
    files.there = {"a": beside}
    kept.turn(kept.due_ns() or 0, (), changed=False)
    assert kept.watched == 1


def test_a_store_that_fails_is_tried_ever_more_rarely(kept: KeptStore, files: Folder, said: list[str]):
    files.there = {"a": None, "b": None}
    files.failure = StoreFailure("the disk is full")
    turn(kept, 0)
    times = []
    for _ in range(4):
        times.append(kept.due_ns())
        kept.turn(times[-1] or 0, (), changed=False)
    assert times == [S, 3 * S, 7 * S, 15 * S]
    files.failure = None
    kept.turn(kept.due_ns() or 0, (), changed=False)
    assert files.taken == ["a", "b"]
    assert said == ["the disk is full"]


def test_living_programs_are_served_while_the_store_fails(kept: KeptStore, files: Folder):
    beside = Beside()
    files.there = {"a": None, "b": beside}
    files.failure = StoreFailure("the disk is full")
    turn(kept, 0)
    kept.turn(1, (kept.seat.bell or 0,), changed=False)
    assert beside.looks == [0, 1]


def test_all_living_programs_are_looked_at_when_the_bell_rings(kept: KeptStore, files: Folder):
    one, other = Beside(due_ns=50), Beside()
    files.there = {"one": one, "other": other}
    turn(kept, 0)
    assert (one.looks, other.looks, kept.due_ns()) == ([0], [0], 50)
    kept.turn(50, (), changed=False)
    assert (one.looks[1:], other.looks[1:]) == ([50], [])
    kept.turn(60, (kept.seat.bell or 0,), changed=False)
    assert (one.looks[2:], other.looks[1:]) == ([60], [60])


def test_a_file_that_is_gone_is_let_go(kept: KeptStore, files: Folder):
    beside = Beside()
    files.there = {"a": beside}
    turn(kept, 0)
    files.there = {}
    turn(kept, 1)
    assert (kept.watched, beside.is_closed, files.taken) == (0, True, [])


@needs_pidfd
def test_the_status_says_who_is_watched(tmp_path: Path, kept: KeptStore, files: Folder, start: Any):
    program = start()
    files.there = {"here": Beside(program.pid), "elsewhere": Beside(), "dead": None}
    turn(kept, 0)
    [status] = statuses(str(tmp_path / "store"))
    assert status == {"pid": 7, "watched": [program.pid], "elsewhere": 1, "stalls": 1}


def test_the_status_names_a_program_before_it_is_looked_at(
    tmp_path: Path, kept: KeptStore, files: Folder, start: Any
):
    named: list[Any] = []

    class Looking(Beside):
        def look(self, now_ns: int) -> int | None:
            named.extend(status["watched"] for status in statuses(str(tmp_path / "store")))
            return super().look(now_ns)

    program = start()
    files.there = {"here": Looking(program.pid)}
    turn(kept, 0)
    assert named == [[program.pid]]


def test_what_is_new_is_handed_on_after_each_turn(kept: KeptStore, files: Folder):
    files.hand_on_ns = 50
    turn(kept, 0)
    assert (files.handed_on, kept.due_ns()) == ([0], 50)
    files.hand_on_ns = None
    kept.turn(50, (), changed=False)
    assert (files.handed_on, kept.due_ns()) == ([0, 50], None)
    kept.end()
    assert files.is_ended


def test_a_flight_folder_that_was_made_again_is_followed(kept: KeptStore, files: Folder):
    kept.turn(0, (), changed=False)
    files.folder.rmdir()
    files.folder.mkdir()
    beside = files.there["new"] = Beside()
    kept.turn(S, (), changed=False)
    assert beside.looks == []
    assert kept.seat.bell is not None
    kept.turn(2 * S, {kept.seat.bell}, changed=False)  # it rings when it has made its link again
    assert beside.looks == [2 * S]


@needs_pidfd
def test_one_with_more_to_say_is_kept_without_its_file(kept: KeptStore, files: Folder):
    beside = Beside(has_more=True, due_ns=50)
    files.there = {"a": beside}
    turn(kept, 0)
    files.there = {}
    turn(kept, 1)
    assert (kept.watched, kept.due_ns()) == (1, 50)
    beside.has_more = False
    turn(kept, 2)
    assert (kept.watched, beside.is_closed) == (0, True)


def test_one_that_is_over_is_finished_and_then_taken_in(kept: KeptStore, files: Folder):
    beside = Beside()
    files.there = {"a": beside}
    turn(kept, 0)
    beside.over = True
    kept.turn(1, (kept.seat.bell or 0,), changed=False)
    assert (beside.finishes, beside.is_closed, files.taken) == ([1], True, ["a"])


def test_figures_are_written_once_a_second_at_most(tmp_path: Path, kept: KeptStore, files: Folder):
    files.there = {"a": None}
    turn(kept, 0)
    files.there = {"b": None}
    turn(kept, S // 2)
    store = str(tmp_path / "store")
    assert statuses(store)[0]["stalls"] == 1
    files.there = {}
    turn(kept, S // 2)
    assert kept.due_ns() == S
    kept.turn(S, (), changed=False)
    assert (statuses(store)[0]["stalls"], kept.due_ns()) == (2, None)


def test_many_rings_are_answered_together(kept: KeptStore, files: Folder):
    bell = kept.seat.bell
    assert bell is not None
    turn(kept, 0)
    kept.turn(5, (bell,), changed=False)
    assert (list(kept.descriptors()), kept.due_ns()) == ([], 5 + S // 50)
    kept.turn(5 + S // 50, (), changed=False)
    assert (list(kept.descriptors()), kept.due_ns()) == ([bell], None)


def test_a_bell_that_never_rests_takes_half_of_the_time(kept: KeptStore):
    bell = kept.seat.bell
    assert bell is not None
    turn(kept, 0)
    kept.turn(S, (bell,), changed=False)
    kept.has_worked(3 * S, 2 * S)
    assert (list(kept.descriptors()), kept.due_ns()) == ([], 5 * S)
    kept.turn(5 * S, (), changed=False)
    assert (list(kept.descriptors()), kept.due_ns()) == ([bell], None)


def test_a_file_whose_every_look_fails_is_given_up(kept: KeptStore, files: Folder):
    def fails(now_ns: int) -> int | None:
        raise OSError("it is cut short")

    def opened(_: str) -> Beside:
        beside = Beside()
        beside.look = fails  # type: ignore[method-assign]
        return beside

    files.there = {"a": Beside()}
    files.open = opened  # type: ignore[method-assign]
    turn(kept, 0)
    turns = 1
    while (due_ns := kept.due_ns()) is not None:
        kept.turn(due_ns, (), changed=False)
        turns += 1
    assert turns == 13
