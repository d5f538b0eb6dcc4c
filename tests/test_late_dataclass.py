"""The late one is to all who use it what dataclasses makes: the same classes, once by each."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import sys
import threading
from dataclasses import field
from types import SimpleNamespace
from typing import Any, ClassVar, get_type_hints

import pytest

from loopcanary.late_dataclass import dataclass as late


def classes(dataclass: Any) -> SimpleNamespace:
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Frozen:
        number: int
        text: str = "a"
        items: tuple[int, ...] = field(default=(), metadata={"row": 1})
        names: dict[str, int] = field(default_factory=dict, compare=False, repr=False)
        constant: ClassVar[str] = "c"

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Child(Frozen):
        """With a field more, and another default."""

        text: str = "b"
        more: int = 2

    @dataclass(slots=True)
    class Mutable:
        first: int
        rest: list[int] = field(default_factory=list)
        seen: int = field(init=False, default=7)
        made: list[int] = field(init=False, default_factory=list)
        set_later: int = field(init=False, repr=False, compare=False)
        by_name: int = field(default=1, kw_only=True)

    @dataclass(slots=True, eq=False)
    class Itself:
        number: int = 0

    @dataclass(frozen=True)
    class Open:
        number: int

        def __post_init__(self) -> None:
            if self.number < 0:
                raise ValueError(self.number)

        def __repr__(self) -> str:
            return "its own"

    @dataclass(frozen=True, slots=True)
    class Empty:
        pass

    @dataclass(frozen=True)
    class Equal:  # noqa: PLW1641 - it is made
        put: int
        absent: int = 0
        _put: tuple[int, ...] = field(default_factory=tuple)

        def __eq__(self, other: object) -> bool:
            return True

    @dataclass(frozen=True, slots=True, weakref_slot=True)
    class Weak:
        number: int

    return SimpleNamespace(**{name: kind for name, kind in locals().items() if isinstance(kind, type)})


BOTH = pytest.mark.parametrize(
    "kinds", [classes(late), classes(dataclasses.dataclass)], ids=["late", "plain"]
)
LATE, PLAIN = classes(late), classes(dataclasses.dataclass)
NAMES = sorted(set(vars(LATE)))


@BOTH
def test_values_are_made_from_arguments_and_defaults(kinds):
    one = kinds.Frozen(number=1)
    assert (one.number, one.text, one.items, one.names, one.constant) == (1, "a", (), {}, "c")
    assert kinds.Frozen(number=1).names is not one.names
    child = kinds.Child(number=3, more=4)
    assert (child.number, child.text, child.more) == (3, "b", 4)
    other = kinds.Mutable(1, [2], by_name=3)
    assert (other.first, other.rest, other.seen, other.made, other.by_name) == (1, [2], 7, [], 3)
    assert not hasattr(other, "set_later")
    assert kinds.Empty() == kinds.Empty()


@BOTH
@pytest.mark.parametrize("bad", [{}, {"number": 1, "unknown": 2}])
def test_wrong_arguments_name_the_class(kinds, bad):
    with pytest.raises(TypeError, match=r"Frozen\.__init__\(\)"):
        kinds.Frozen(**bad)
    with pytest.raises(TypeError, match="positional"):
        kinds.Frozen(1)


@BOTH
def test_values_compare_and_hash_by_their_fields(kinds):
    one, same = kinds.Frozen(number=1, names={"a": 1}), kinds.Frozen(number=1)
    assert one == same
    assert hash(one) == hash(same)
    assert one != kinds.Frozen(number=2)
    assert one != kinds.Child(number=1, text="a")
    assert kinds.Mutable(1) == kinds.Mutable(1)
    with pytest.raises(TypeError, match="unhashable"):
        hash(kinds.Mutable(1))
    itself = kinds.Itself()
    assert hash(kinds.Equal(1)) == hash(kinds.Equal(1))
    assert kinds.Equal(1) == kinds.Equal(2)
    assert itself != kinds.Itself()
    assert {itself: 1}[itself] == 1


@BOTH
def test_a_frozen_value_does_not_change(kinds):
    for value in (kinds.Frozen(number=1), kinds.Child(number=1), kinds.Open(1)):
        with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'number'"):
            value.number = 2
        with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'number'"):
            del value.number
    with pytest.raises((AttributeError, TypeError)):
        kinds.Frozen(number=1).other = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        kinds.Open(1).other = 1

    class Inherits(kinds.Open):
        """Not a dataclass."""

    plain = Inherits(1)
    plain.other = 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        plain.number = 2
    changing = kinds.Mutable(1)
    changing.first = 2
    assert changing.first == 2


@BOTH
def test_a_class_keeps_what_it_defines_itself(kinds):
    assert repr(kinds.Open(1)) == "its own"
    with pytest.raises(ValueError, match="-1"):
        kinds.Open(-1)


@BOTH
def test_a_frozen_dataclass_of_the_standard_library_inherits(kinds):
    @dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
    class Plugged(kinds.Frozen):
        own: int

    one = Plugged(number=1, own=2)
    assert (one.number, one.text, one.own) == (1, "a", 2)
    assert dataclasses.replace(one, own=3) == Plugged(number=1, own=3)
    with pytest.raises(TypeError, match="non-frozen"):
        dataclasses.dataclass(type("Open", (kinds.Frozen,), {}))


@BOTH
def test_values_are_copied_and_pickled(kinds, monkeypatch):
    for kind in vars(kinds).values():  # pickle finds classes by their names
        kind.__qualname__ = kind.__name__
        monkeypatch.setattr(sys.modules[__name__], kind.__name__, kind, raising=False)
    for value in (kinds.Frozen(number=1, names={"a": 1}), kinds.Child(number=2), kinds.Empty()):
        assert copy.copy(value) == value
        assert copy.deepcopy(value) == value
        assert pickle.loads(pickle.dumps(value)) == value


@pytest.mark.parametrize("name", NAMES)
def test_the_standard_library_sees_the_same_class(name):
    ours, plain = getattr(LATE, name), getattr(PLAIN, name)
    assert str(inspect.signature(ours)) == str(inspect.signature(plain))
    assert [str(one) for one in dataclasses.fields(ours)] == [str(one) for one in dataclasses.fields(plain)]
    assert repr(ours.__dataclass_params__) == repr(plain.__dataclass_params__)
    assert ours.__match_args__ == plain.__match_args__
    assert get_type_hints(ours.__init__) == get_type_hints(plain.__init__)
    assert ours.__init__.__module__ == plain.__init__.__module__
    assert getattr(ours, "__slots__", None) == getattr(plain, "__slots__", None)
    assert (ours.__hash__ is None) == (plain.__hash__ is None)
    assert {one for one in vars(ours) if one.startswith("__")} == {
        one for one in vars(plain) if one.startswith("__")
    }


def test_values_are_written_as_the_standard_library_writes_them():
    for kinds in (LATE, PLAIN):
        one = kinds.Frozen(number=1, items=(2,))
        assert repr(one).endswith("Frozen(number=1, text='a', items=(2,))")
        assert dataclasses.asdict(one) == {"number": 1, "text": "a", "items": (2,), "names": {}}
        assert dataclasses.replace(one, number=3) == kinds.Frozen(number=3, items=(2,))
        match kinds.Mutable(5):
            case kinds.Mutable(first):
                assert first == 5


def test_methods_may_be_made_by_many_threads_at_once():
    start, made = threading.Barrier(4), []

    def make(kind: Any) -> None:
        start.wait()
        made.append((kind(number=1), repr(kind(number=1)), hash(kind(number=1))))

    for _ in range(20):
        kind = classes(late).Frozen
        threads = [threading.Thread(target=make, args=(kind,)) for _ in range(4)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
    assert len(made) == 80
    assert len({text for _, text, _ in made}) == 1
    assert len({number for *_, number in made}) == 1
