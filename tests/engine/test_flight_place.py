"""What an ending process leaves for a keeper that is still on its way."""

from __future__ import annotations

from pathlib import Path

from loopcanary.engine.recorder import FlightPlace


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
