"""Dataclasses whose methods are made when they are first called.

`dataclasses.dataclass` compiles the text of up to six methods for each class, 0.4 to 0.7 ms: more than half
of what it took to load all that judges a stall. Few classes of a process need all of them, many need none.

What is made here is a dataclass in all else: `dataclasses.fields`, `replace`, `asdict` and classes that
inherit from it see no difference.
"""

from __future__ import annotations

import dataclasses
import sys

TYPE_CHECKING = False  # typing is not loaded for it
if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import dataclass as dataclass  # noqa: PLC0414 - for those who import it from here
    from typing import Any
else:

    def dataclass(*, frozen: bool = False, eq: bool = True, **others: bool) -> Callable[[type], type]:
        """As `dataclasses.dataclass`; `others`: `slots`, `kw_only`, `weakref_slot`. What the class defines
        itself is kept; it has no InitVar."""
        return lambda kind: _late(kind, frozen, eq, others)


def _late(kind: Any, frozen: bool, eq: bool, others: dict[str, bool]) -> Any:
    if kind.__doc__ is None:
        kind.__doc__ = kind.__name__  # it would be made from the signature
    # A frozen one gets two methods at once. Children of frozen ones have to be made in that way.
    inherits = any(dataclasses.is_dataclass(parent) for parent in kind.__mro__[1:])
    made: Any = dataclasses.dataclass(init=False, repr=False, eq=False, frozen=frozen and inherits, **others)(
        kind
    )
    params = made.__dataclass_params__
    params.init = params.repr = True
    params.eq, params.frozen = eq, frozen
    methods: dict[str, Any] = {name: _Late(made, name) for name in ("__init__", "__repr__")}
    if eq:
        methods |= {"__eq__": _Late(made, "__eq__"), "__hash__": _Late(made, "__hash__") if frozen else None}
    if frozen:
        methods |= {"__setattr__": _set, "__delattr__": _delete}
    if frozen and others.get("slots"):
        methods |= {"__getstate__": _state, "__setstate__": _set_state}
    for name, method in methods.items():
        if made.__dict__.get(name) is None:  # a class with an __eq__ of its own has None for its hash
            setattr(made, name, method)
    return made


class _Late:
    """A method of one class. Who first asks for it has it made, and put in this one's place."""

    __slots__ = "_kind", "_name"

    def __init__(self, kind: type, name: str) -> None:
        self._kind = kind
        self._name = name

    def __get__(self, value: object, owner: type | None = None) -> Any:
        # Two threads may make it at once: they make equal ones.
        method = _init(self._kind) if self._name == "__init__" else _borrowed(self._kind, self._name)
        setattr(self._kind, self._name, method)
        return method.__get__(value, owner)


class _Absent:
    """Stands for a field that a function makes."""

    def __repr__(self) -> str:
        return "<factory>"  # as signatures of dataclasses have it


def _borrowed(kind: Any, name: str) -> Any:
    """The method of a dataclass with the same fields."""
    like = dataclasses.make_dataclass(
        kind.__name__,
        [(field.name, field.type, field) for field in dataclasses.fields(kind)],
        init=False,
        repr=name == "__repr__",
        eq=name != "__repr__",
        unsafe_hash=name == "__hash__",
    )
    return like.__dict__[name]


def _init(kind: Any) -> Any:
    """A text of our own: the one of dataclasses, for a frozen class, comes with two other methods."""
    given: dict[str, Any] = {"__put": object.__setattr__, "__absent": _Absent()}
    positional, keywords, lines = ["self"], ["*"], []
    for field in dataclasses.fields(kind):
        name, value, default = field.name, field.name, ""
        if field.default is not dataclasses.MISSING:
            given[f"__late_{name}"] = field.default
            default = f"=__late_{name}"
        elif field.default_factory is not dataclasses.MISSING:
            given[f"__late_{name}"] = field.default_factory
            default = "=__absent"
            value = f"__late_{name}() if {name} is __absent else {name}"
        if field.init:
            (keywords if field.kw_only else positional).append(name + default)
            lines.append(f"__put(self, {name!r}, {value})")
        elif default:
            made = "()" if field.default is dataclasses.MISSING else ""
            lines.append(f"__put(self, {name!r}, __late_{name}{made})")
    if hasattr(kind, "__post_init__"):
        lines.append("self.__post_init__()")
    head = ", ".join(positional + (keywords if len(keywords) > 1 else []))
    text = f" def __init__({head}):\n  {'; '.join(lines) or 'pass'}\n return __init__"
    found: dict[str, Any] = {}
    module = sys.modules[kind.__module__].__dict__  # what annotations name
    exec(f"def make({', '.join(given)}):\n{text}", module, found)  # noqa: S102 - of names of ours
    init = found["make"](**given)
    init.__qualname__ = f"{kind.__qualname__}.__init__"
    init.__annotations__ = {f.name: f.type for f in dataclasses.fields(kind) if f.init} | {"return": None}
    return init


def _is_fixed(self: Any, name: str) -> bool:
    """All of a dataclass, and in plain classes that inherit from it the fields."""
    return "__dataclass_params__" in type(self).__dict__ or name in self.__dataclass_fields__


def _set(self: Any, name: str, value: object) -> None:
    if _is_fixed(self, name):
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
    object.__setattr__(self, name, value)


def _delete(self: Any, name: str) -> None:
    if _is_fixed(self, name):
        raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
    object.__delattr__(self, name)


def _state(self: Any) -> list[Any]:
    """For pickle and copy."""
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)
