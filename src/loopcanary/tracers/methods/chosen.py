"""Which code is traced: packages, modules and globs by name, and `.`, the program's own code."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Final

_HERE: Final = os.path.abspath(__file__)  # noqa: PTH100 - pathlib is not loaded for it
_PACKAGE: Final = _HERE.rpartition(f"{os.sep}tracers{os.sep}")[0] + os.sep
_INSTALLED: Final = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")


class ChosenCode:
    """Says of files whether their functions are traced. Any thread."""

    def __init__(self, wanted: Sequence[str]) -> None:
        """`wanted`: `app`, `lib.module`, `lib.*_api`, `.`; with `!` before it what is left out."""
        self._names = tuple(one for one in wanted if one != "." and not one.startswith("!"))
        self._not = tuple(one[1:] for one in wanted if one.startswith("!"))
        self._own = "." in wanted
        self._known: dict[str, bool] = {}
        # As they are now: a program may change them, and its own code lies where it did.
        standard = os.path.dirname(os.path.abspath(os.__file__))  # noqa: PTH100, PTH120
        scripts = os.path.join(sys.prefix, "bin")  # noqa: PTH118
        self._foreign = tuple(folder + os.sep for folder in (standard, scripts))

    def has(self, file: str) -> bool:
        """Whether what is defined in a file (`co_filename`) is traced."""
        known = self._known.get(file)
        if known is None:
            known = self._known[file] = self._is_chosen(file)
        return known

    def _is_chosen(self, file: str) -> bool:
        if not file or file.startswith("<"):
            return False
        path = os.path.abspath(file)  # noqa: PTH100
        if path.startswith(_PACKAGE):
            return False
        names = tuple(_module_names(path))
        if any(_matches(name, self._not) for name in names):
            return False
        return any(_matches(name, self._names) for name in names) or (self._own and self._is_own(path))

    def _is_own(self, path: str) -> bool:
        if path.startswith(_PACKAGE) or any(folder in path for folder in _INSTALLED):
            return False
        return not path.startswith(self._foreign)


def _matches(name: str, patterns: Sequence[str]) -> bool:
    """Whether it is one of the modules, or in one of the packages."""
    return any(fnmatchcase(name, pattern) or fnmatchcase(name, f"{pattern}.*") for pattern in patterns)


def _module_names(path: str) -> Iterator[str]:
    """What the file is called when it is imported, from each folder of sys.path that it is in."""
    stem = path.removesuffix(".py").removesuffix(f"{os.sep}__init__")
    for entry in tuple(sys.path):
        folder = os.path.join(os.path.abspath(str(entry)), "")  # noqa: PTH100, PTH118 - '': the current one
        if stem.startswith(folder):
            yield stem[len(folder) :].replace(os.sep, ".")
