"""What an ending process leaves for a keeper that is still on its way."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from loopcanary.engine import recorder
from loopcanary.engine.recorder import FlightPlace
from loopcanary.store.recovery.flight_folder import Entry


def left(tmp_path: Path) -> tuple[FlightPlace, Path, Path]:
    memory, link = tmp_path / "memory.flight", tmp_path / "store/flight/1.flight"
    memory.write_bytes(b"evidence")
    Path(f"{memory}.methods").write_bytes(b"names")
    place = FlightPlace(str(memory), str(link))
    place.prepare()
    return place, memory, link


def test_a_saved_copy_leaves_file_and_link_where_they_are(tmp_path):
    place, memory, link = left(tmp_path)
    place.save()
    assert link.with_suffix(".saved").read_bytes() == memory.read_bytes() == b"evidence"
    assert link.is_symlink()
    assert Path(f"{memory}.methods").exists()


def test_what_was_taken_in_meanwhile_has_no_copy(tmp_path):
    place, _, link = left(tmp_path)
    link.unlink()
    place.save()
    assert list(link.parent.iterdir()) == []


def test_what_settles_is_in_the_store_with_what_lies_beside_it(tmp_path):
    place, memory, link = left(tmp_path)
    place.settle()
    assert link.read_bytes() == b"evidence"
    assert not link.is_symlink()
    assert Path(f"{link}.methods").read_bytes() == b"names"
    assert not memory.exists()


@pytest.mark.parametrize("gone", ["methods", "patches", "calls-3"])
def test_what_a_keeper_has_removed_before_it_settles(tmp_path, monkeypatch, gone):
    place, memory, link = left(tmp_path)
    names = [f"{memory.name}.{gone}", f"{memory.name}.methods", memory.name]
    Path(f"{memory}.methods").unlink()
    with monkeypatch.context() as patch:
        patch.setattr(recorder.os, "listdir", lambda _: names)
        place.settle()
    assert [one.name for one in link.parent.iterdir()] == [link.name]
    assert link.read_bytes() == b"evidence"


@pytest.mark.parametrize("step", [FlightPlace.settle, FlightPlace.save])
@pytest.mark.parametrize("when", ["_copy_file", "_copy"])
def test_what_a_keeper_takes_in_meanwhile_is_left_nowhere(tmp_path, monkeypatch, step, when):
    """`_copy_file`: before a copy is begun; `_copy`: when it is written."""
    place, memory, link = left(tmp_path)
    call = getattr(recorder, when)

    def taken_in(*arguments):
        done = call(*arguments) if when == "_copy" else None
        place.discard()
        return call(*arguments) if when == "_copy_file" else done

    monkeypatch.setattr(recorder, when, taken_in)
    step(place)
    assert list(link.parent.iterdir()) == []
    assert [*tmp_path.glob(f"{memory.name}*")] == []


@pytest.mark.parametrize("who", ["the program", "a keeper"])
def test_what_is_killed_as_it_removes_a_file_leaves_nothing_without_it(tmp_path, monkeypatch, who):
    place, memory, link = left(tmp_path)
    Path(f"{memory}.methods").rename(f"{memory}.patches")
    entry = Entry(name=link.name, owner=os.geteuid(), changed_s=0, path=memory, file=memory.lstat())
    remove, unlink = (place.discard if who == "the program" else entry.forget), os.unlink

    def killed(path, **options):
        if str(path).endswith("patches"):
            raise KeyboardInterrupt
        unlink(path, **options)

    monkeypatch.setattr(os, "unlink", killed)
    with pytest.raises(KeyboardInterrupt):
        remove()
    monkeypatch.undo()
    assert memory.exists()
    remove()
    assert [*tmp_path.glob(f"{memory.name}*")] == []
