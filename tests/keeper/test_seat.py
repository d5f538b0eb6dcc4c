"""The seat of a store's keeper: its lock, its bell, its status."""

from __future__ import annotations

import os
import select
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from loopcanary import keeper as place
from loopcanary.keeper.seat import Seat, forget_unused, statuses


@pytest.fixture
def store(tmp_path: Path) -> str:
    return str(tmp_path / "store")


@pytest.fixture
def seat(store: str) -> Iterator[Seat]:
    made = Seat(store)
    assert made.take()
    yield made
    made.give_back()


def ring(store: str, name: str = "its.flight") -> None:
    """As a program does."""
    bell = os.open(place.bell_path(store), os.O_WRONLY | os.O_NONBLOCK)
    os.write(bell, f"{name}\n".encode())
    os.close(bell)


def is_rung(seat: Seat) -> bool:
    assert seat.bell is not None
    return bool(select.select([seat.bell], [], [], 0)[0])


def test_one_keeper_has_the_seat(store: str, seat: Seat):
    other = Seat(store)
    assert not other.take()
    seat.give_back()
    assert other.take()
    other.give_back()


def test_a_bell_is_heard_once(store: str, seat: Seat):
    assert not is_rung(seat)
    for _ in range(3):
        ring(store)
    assert is_rung(seat)
    assert seat.hear() == {"its.flight"}
    assert not is_rung(seat)


def test_who_rings_says_of_which_file(store: str, seat: Seat):
    for name in ("one.flight", "two.flight", "one.flight"):
        ring(store, name)
    assert seat.hear() == {"one.flight", "two.flight"}
    assert seat.hear() == set()


def test_a_keeper_that_ends_leaves_nothing_in_memory(store: str, seat: Seat):
    mark = Path(place.path_in_memory(store, place.MARK))
    mark.touch()
    seat.give_back()
    assert not mark.exists()
    assert not Path(place.bell_path(store)).exists()


def test_what_was_not_used_for_a_month_is_removed(
    store: str, seat: Seat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    memory, now_s = tmp_path / "memory", time.time()
    memory.mkdir()
    monkeypatch.setattr(place, "memory", str(memory))
    heard = Seat(str(tmp_path / "heard"))
    assert heard.take()
    for name in ("loopcanary-a.mark", "loopcanary-b.mark", "other.mark"):
        (memory / name).touch()
    os.mkfifo(memory / "loopcanary-a.bell")
    for path in memory.iterdir():
        os.utime(path, (0, 0) if "-b" not in path.name else None)
    forget_unused(now_s)
    left = {Path(place.bell_path(heard.store)).name, "loopcanary-b.mark", "other.mark"}
    assert {path.name for path in memory.iterdir()} == left
    heard.give_back()


def test_one_without_the_seat_leaves_it_alone(store: str, seat: Seat):
    other = Seat(store)
    assert not other.take()
    other.give_back()
    assert seat.is_there()


def test_without_memory_the_bell_is_in_the_store(store: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(place, "memory", f"{store}/none")
    assert place.bell_path(store) == place.path(store, place.BELL)


def test_a_store_has_one_bell_whatever_leads_to_it(store: str, tmp_path: Path, seat: Seat):
    (tmp_path / "link").symlink_to(store)
    assert place.bell_path(f"{tmp_path}/link") == place.bell_path(store)


def test_a_bell_that_was_rung_for_hours_is_heard_once(store: str, seat: Seat):
    bell = os.open(place.bell_path(store), os.O_WRONLY | os.O_NONBLOCK)
    with suppress(BlockingIOError):
        while os.write(bell, b"!" * 1_000):
            pass
    os.close(bell)
    seat.hear()
    assert not is_rung(seat)


def test_without_a_keeper_a_bell_cannot_be_rung(store: str, seat: Seat):
    seat.give_back()
    with pytest.raises(OSError, match="No such file"):
        ring(store)


def test_a_keeper_that_is_gone_says_nothing(store: str, seat: Seat):
    seat.write_status({"pid": 7})
    assert statuses(store) == [{"pid": 7}]
    seat.give_back()
    assert statuses(store) == []


def test_a_damaged_status_is_none(store: str, seat: Seat):
    Path(place.path(store, place.STATUS)).write_text('["')
    assert statuses(store) == [{}]


def test_a_folder_that_cannot_be_read_has_no_keeper(store: str):
    too_long = "x" * 5_000  # root may read what other users may not
    assert statuses(f"{store}/{too_long}") == []


def test_a_keeper_whose_folder_is_gone_knows_it(store: str, seat: Seat):
    assert seat.is_there()
    shutil.rmtree(store)
    assert not seat.is_there()
    another = Seat(store)
    assert another.take()
    assert not seat.is_there()
    another.give_back()


def test_a_file_in_the_place_of_the_bell_is_refused(store: str):
    place.prepare(store)
    bell = Path(place.bell_path(store))
    bell.touch()
    seat = Seat(store)
    with pytest.raises(OSError, match="not the keeper's"):
        seat.take()
    bell.unlink()
    bell.symlink_to("/dev/null")
    with pytest.raises(OSError, match="symbolic links"):
        seat.take()
    bell.unlink()
    assert seat.take()  # it did not keep the lock
    seat.give_back()
