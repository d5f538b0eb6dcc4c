"""The form of a dataclass: how its values are written as JSON objects and read back.

The first value of a class makes its form, which is kept.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from loopcanary.model.spelling import NO_DEFAULT
from loopcanary.wire.parts import WirePart, parts_of
from loopcanary.wire.values import MISSING, Codec, Misfit, codec_of, wanted

_T = TypeVar("_T")
_Default = Callable[[dict[str, Any]], Any]
_Slot = tuple[str, str, type | None, Callable[[Any], Any], _Default | None]


class Members:
    """Some parts of a class as the fields of one JSON object, for reading."""

    def __init__(self, parts: Sequence[WirePart], codecs: dict[str, Codec]) -> None:
        own = [part for part in parts if not part.spelling.inside and part.field is not None]
        self._slots = [_slot(part, codecs[part.attribute]) for part in own if not part.spelling.flat]
        self._flat = [(part.attribute, codecs[part.attribute].read) for part in own if part.spelling.flat]
        self._groups = {name: Members(group, codecs) for name, group in _groups(parts).items()}
        self.can_miss = all(slot[-1] is not None for slot in self._slots)
        """Whether every field has a default."""

    def read(self, document: Any) -> dict[str, Any]:
        """The attributes that the JSON object has. Raises Misfit."""
        if not isinstance(document, dict):
            raise wanted("an object", document)
        found: dict[str, Any] = {}
        name = ""
        try:
            for attribute, name, plain, read, default in self._slots:
                value = document.get(name, MISSING)
                if value.__class__ is plain:
                    found[attribute] = value
                elif value is MISSING and default is not None:
                    found[attribute] = default(found)
                else:
                    found[attribute] = read(value)
            for name, group in self._groups.items():
                inner = document.get(name)
                found |= group.read({} if inner is None and group.can_miss else inner)
        except Misfit as misfit:
            raise misfit.below(f".{name}") from None
        for attribute, read in self._flat:
            found[attribute] = read(document)
        return found


class Form(Generic[_T]):
    def __init__(self, kind: type[_T]) -> None:
        self.kind = kind
        parts = [part for part in parts_of(kind) if not part.spelling.apart]
        codecs = {part.attribute: codec_of(part, nested) for part in parts}
        self._members = Members(parts, codecs)
        self._write = _writer(parts, codecs)

    def write(self, value: Any) -> dict[str, Any]:
        return self._write(value)

    def read(self, document: Any) -> _T:
        """The value of a JSON object; returns what is a value already. Raises Misfit."""
        if document.__class__ is self.kind:
            return document
        return self.kind(**self.attributes(document))

    def attributes(self, document: Any) -> dict[str, Any]:
        """The constructor's arguments, from a JSON object. Raises Misfit."""
        return self._members.read(document)


SPECIAL: dict[type, type[Form[Any]]] = {}
"""Classes with a form that is more than their fields."""
_FORMS: dict[type, Form[Any]] = {}


def form_of(kind: type[_T]) -> Form[_T]:
    """The form of a dataclass. TypeError: it is not one, or no codec knows one of its fields."""
    form = _FORMS.get(kind)
    if form is None:
        form = _FORMS[kind] = SPECIAL.get(kind, Form)(kind)
    return form


def nested(kind: type) -> Codec:
    """The codec of a dataclass within another; the first value makes its form."""
    return Codec(
        lambda document: form_of(kind).read(document),
        lambda value: form_of(kind).write(value),
    )


def _writer(parts: Sequence[WirePart], codecs: dict[str, Codec]) -> Callable[[Any], dict[str, Any]]:
    """The function that makes the JSON object of a value.

    It is made from a text, as `dataclasses` makes methods: a dict display is eight times as fast as a loop.
    """
    names = {f"write_{part.attribute}": codecs[part.attribute].write for part in parts}
    expression = f"lambda value: {_display(parts, codecs)}"
    # Not `eval` of a text: with it CPython forgets that Control-C ended the program, and exits with 1.
    code = compile(expression, "<wire>", "eval")
    return eval(code, names)  # type: ignore[no-any-return] # noqa: S307 - names of our own fields only


def _display(parts: Sequence[WirePart], codecs: dict[str, Codec]) -> str:
    """`{'name': value.name, 'began_at': write_began_wall_ns(value.began_wall_ns), **write_figures(...)}`."""
    groups = _groups(parts)
    entries: dict[str, str] = {}
    for part in parts:
        inside, attribute = part.spelling.inside, f"value.{part.attribute}"
        if inside:
            entries[inside] = f"{inside!r}: {_display(groups[inside], codecs)}"
            continue
        if codecs[part.attribute].write is not None:
            attribute = f"write_{part.attribute}({attribute})"
        entries[part.attribute] = f"**{attribute}" if part.spelling.flat else f"{part.name!r}: {attribute}"
    return f"{{{', '.join(entries.values())}}}"


def _groups(parts: Sequence[WirePart]) -> dict[str, list[WirePart]]:
    """The parts of each inner object."""
    groups: dict[str, list[WirePart]] = {}
    for part in parts:
        if part.spelling.inside:
            own = dataclasses.replace(part, spelling=dataclasses.replace(part.spelling, inside=""))
            groups.setdefault(part.spelling.inside, []).append(own)
    return groups


def _slot(part: WirePart, codec: Codec) -> _Slot:
    return part.attribute, part.name, codec.plain, codec.read, _default_of(part)


def _default_of(part: WirePart) -> _Default | None:
    """The function that gives a missing value; None: the document must have it."""
    field, spelling = part.field, part.spelling
    if spelling.needed:
        return None
    if spelling.like:
        return lambda found: found[spelling.like]
    for default in (spelling.absent, NO_DEFAULT if field is None else field.default):
        if default is not NO_DEFAULT and default is not dataclasses.MISSING:
            return lambda _, default=default: default  # type: ignore[misc]
    if field is not None and field.default_factory is not dataclasses.MISSING:
        factory = field.default_factory
        return lambda _: factory()
    empty = _empty(part.hint)
    return None if empty is NO_DEFAULT else lambda _: empty


def _empty(hint: Any) -> Any:
    """None or an empty list, if the type allows that; NO_DEFAULT: there must be a value."""
    if type(None) in getattr(hint, "__args__", ()):
        return None
    return () if getattr(hint, "__origin__", None) is tuple else NO_DEFAULT
