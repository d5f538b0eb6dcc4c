"""What the codec derives from a dataclass, and what a field's spelling changes."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import ClassVar

import pytest

from loopcanary.model.spelling import NEEDED, spelled, written
from loopcanary.wire import WireError, from_wire, to_wire


class Colour(Enum):
    RED = "red"


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    x: int
    label: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    colour: ClassVar[Colour] = Colour.RED
    length_ns: int
    drawn_wall_ns: int | None = None
    rate_mhz: int = field(default=60_000, metadata=spelled(bounds=(1, 100_000)))
    tags: tuple[str, ...] = field(default=(), metadata=spelled(name="labels"))
    origin: Point = field(metadata=spelled(flat=True))
    points: tuple[Point, ...] = ()
    low: int = field(default=0, metadata=spelled(inside="range"))
    high: int = field(default=9, metadata=spelled(inside="range"))
    levels: tuple[int, ...] = field(default=(0, 0), metadata=spelled(keys=("few", "many")))
    steps: tuple[tuple[int, int], ...] = field(default=(), metadata=spelled(row=("at_ns", "count")))
    count: int = field(metadata=spelled(absent=3))
    owner: str = field(default="me", metadata=NEEDED)

    @property
    @written(after="length_ns")
    def half_ns(self) -> int:
        return self.length_ns // 2


SHEET = Sheet(
    length_ns=3_000_000,
    tags=("a",),
    origin=Point(x=1),
    points=(Point(x=2, label="b"),),
    levels=(1, 2),
    steps=((1_000_000, 5),),
    count=4,
    owner="you",
)
WRITTEN = {
    "colour": "red",
    "length_ms": 3.0,
    "half_ms": 1.5,
    "drawn_at": None,
    "rate_hz": 60.0,
    "labels": ["a"],
    "x": 1,
    "label": "",
    "points": [{"x": 2, "label": "b"}],
    "range": {"low": 0, "high": 9},
    "levels": {"few": 1, "many": 2},
    "steps": [{"at_ms": 1.0, "count": 5}],
    "count": 4,
    "owner": "you",
}


def test_a_value_is_written_in_the_order_of_its_fields() -> None:
    assert list(to_wire(SHEET).items()) == list(WRITTEN.items())


def test_a_value_comes_back_from_what_was_written() -> None:
    assert from_wire(Sheet, WRITTEN) == SHEET


def test_missing_fields_take_their_defaults() -> None:
    read = from_wire(Sheet, {"length_ms": 1, "x": 1, "owner": "o", "unknown": 1})
    assert (read.drawn_wall_ns, read.tags, read.points, read.high, read.count) == (None, (), (), 9, 3)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"owner": None}, "sheet.owner: must be text, not NoneType"),
        ({"length_ms": None}, "sheet.length_ms: must be a number, not NoneType"),
        ({"x": "1"}, "sheet.x: must be a whole number, not str"),
        ({"points": [{"x": 1}, 2]}, r"sheet.points\[1\]: must be an object, not int"),
        ({"points": {}}, "sheet.points: must be a list, not dict"),
        ({"range": {"high": True}}, "sheet.range.high: must be a whole number, not bool"),
        ({"rate_hz": 1e6}, "sheet.rate_hz: 1000000.0 is out of range"),
        ({"levels": {"few": 1.5}}, "sheet.levels.few: must be a whole number, not float"),
        ({"steps": [{"at_ms": 1}]}, r"sheet.steps\[0\].count: must be a whole number, not nothing"),
    ],
)
def test_a_misfit_names_its_path(changes: dict[str, object], message: str) -> None:
    with pytest.raises(WireError, match=f"^{message}$"):
        from_wire(Sheet, WRITTEN | changes)


def test_a_needed_field_has_no_default() -> None:
    document = {name: value for name, value in WRITTEN.items() if name != "owner"}
    with pytest.raises(WireError, match=r"sheet\.owner: must be text, not nothing"):
        from_wire(Sheet, document)


def test_a_field_like_another_takes_its_value() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Named:
        name: str
        full: str = field(metadata=spelled(like="name"))

    assert from_wire(Named, {"name": "n"}).full == "n"
