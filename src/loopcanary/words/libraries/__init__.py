"""Advice about libraries: `<package>.toml` beside this file, read when a stall leads to the package.

A table is a row: its name is the end of the row's id, its keys are the columns of words.remedies.Remedy, with
blanks between names. `modules` is the package itself where a row says neither that nor what it needs. A file
of the one line `like = "other"` has the rows of another library. Python has the rows of what no package
brings: the language, its standard library, loops, causes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any

from loopcanary.words.remedies.remedy import CAUSES_OF, Needs, Remedy, Way

FOLDER = Path(__file__).parent


class LibraryFileError(ValueError):
    """A mistake in a file of remedies: its text names file, row and key."""


@cache
def rows_of(package: str) -> tuple[Remedy, ...]:
    """The rows of a package's file; none where it has no file. Raises LibraryFileError."""
    file = FOLDER / f"{package}.toml"
    return read_rows(file) if package.isidentifier() and file.is_file() else ()


def text_of(id_: str) -> str | None:
    """The sentence of a row, by its whole id; None: there is no such row."""
    return next((row.text for row in rows_of(id_.partition(".")[0]) if row.id == id_), None)


def read_rows(file: Path) -> tuple[Remedy, ...]:
    """The rows of a file, whose name is the package's.

    Raises LibraryFileError; OSError: the file cannot be read.
    """
    import tomllib  # a watched program that has its stalls judged elsewhere does not load it

    package = file.stem
    try:
        tables = tomllib.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise LibraryFileError(f"{file}: {error}") from None
    if isinstance(other := tables.pop("like", None), str):
        like = rows_of(other)
        if not like or tables:
            raise LibraryFileError(f"{file}: like: it is the only key, and names another file")
        return tuple(replace(row, modules=(*row.modules, package)) if row.modules else row for row in like)
    return tuple(_row(file, name, table) for name, table in tables.items())


def _row(file: Path, name: str, table: Any) -> Remedy:
    where, package = f"{file}: [{name}]", file.stem
    columns = _columns(where, table)
    if not columns.get("text"):
        raise LibraryFileError(f"{where} text: it is missing")
    if not columns.keys() & {"modules", "needs", "within"}:
        columns["modules"] = (package,)
    return Remedy(f"{package}.{name}", **columns)


_NEEDS = {field.name for field in fields(Needs)}
_WAYS = {way.name.lower(): way for way in Way}
_ONE: Mapping[str, Callable[[str], object]] = {
    "text": str,
    "loop": str,
    "within": str,
    "way": _WAYS.__getitem__,
}
"""How columns with one value are read; a KeyError: it is not one of these."""
_MANY = {"calls", "modules", "replaces"}


def _columns(where: str, table: Any) -> dict[str, Any]:
    """The columns of a table. Raises LibraryFileError."""
    if not isinstance(table, Mapping):
        raise LibraryFileError(f"{where}: it is not a table")
    columns: dict[str, Any] = {}
    for key, value in table.items():
        try:
            columns[key] = _value(key, value)
        except KeyError as error:
            raise LibraryFileError(f"{where} {key}: there is no {error}") from None
        except AttributeError:
            raise LibraryFileError(f"{where} {key}: {value!r} has the wrong type") from None
    return columns


def _value(key: str, value: Any) -> Any:
    """The value of a column. Raises KeyError: a word that does not exist; AttributeError: a wrong type."""
    if key == "needs":
        if unknown := value.keys() - _NEEDS:
            raise KeyError(*unknown)
        return Needs(**{name: tuple(words.split()) for name, words in value.items()})
    words = tuple(value.split())
    if key == "causes":
        return frozenset().union(*[CAUSES_OF[word] for word in words])
    return words if key in _MANY else _ONE[key](value)
