"""Files of the program in which what a call names may be defined: by the imports of the file that calls."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from loopcanary.diagnosis.code.code_paths import CodePaths
from loopcanary.diagnosis.code.ownership import Owner, Ownership, absolute

_FROM = re.compile(r"^[ \t]*from +(\.*)([\w.]*) +import +(\([^)]*\)|.*)", re.MULTILINE)
_IMPORT = re.compile(r"^[ \t]*import +(.*)", re.MULTILINE)
_ITEM = re.compile(r"([\w.]+)(?: +as +(\w+))?")
_MADE = r"\b{name} *(?:: *([\w.]+)|= *([\w.]+)\()"
"""`ledger = Ledger(...)` and `ledger: Ledger`."""


def imported_files(lines: Sequence[str], file: str, callee: str, paths: CodePaths) -> Iterator[str]:
    """Files of the program that may define what `callee` ends with, whether they exist or not: of the module,
    class or function that it begins with, or by which its receiver was made. `lines`: the text of `file`."""
    text, receiver = "\n".join(lines), callee.rpartition(".")[0].rpartition(".")[2]
    names = {callee.partition(".")[0]}
    if receiver:
        made = re.findall(_MADE.format(name=receiver), text)
        names |= {name.partition(".")[0] for both in made for name in both if name}
    ownership = Ownership(paths)
    here = absolute(file, paths).rpartition("/")[0]
    roots = dict.fromkeys((*paths.roots, *paths.editable, paths.working, here))
    for dots, module in dict.fromkeys(_modules(text, names)):
        folders = (here.rsplit("/", dots - 1)[0],) if dots else roots
        for folder in folders:
            path = f"{folder}/{module.replace('.', '/')}".rstrip("/")
            for found in (f"{path}.py", f"{path}/__init__.py"):
                if ownership.of(found) is Owner.OWN:
                    yield found


def _modules(text: str, names: set[str]) -> Iterator[tuple[int, str]]:
    """Number of leading dots, and name, of the modules that the names come from."""
    for dots, module, items in _FROM.findall(text):
        for item, alias in _ITEM.findall(items.partition("#")[0]):
            if (alias or item) in names:
                yield len(dots), module
                yield len(dots), f"{module}.{item}".lstrip(".")
    for items in _IMPORT.findall(text):
        for item, alias in _ITEM.findall(items.partition("#")[0]):
            if (alias or item.partition(".")[0]) in names:
                yield 0, item
