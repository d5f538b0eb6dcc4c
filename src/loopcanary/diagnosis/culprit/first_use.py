"""The first use of a name resolves its lazy import (PEP 810): frames show that line, not the statement."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from loopcanary.diagnosis.case import StallCase
from loopcanary.diagnosis.causes.verdict import Verdict
from loopcanary.diagnosis.code.call_sites import one_line, shorten
from loopcanary.diagnosis.code.ownership import CodePaths, Owner, Ownership, absolute
from loopcanary.diagnosis.code.stack_frames import Role
from loopcanary.diagnosis.culprit.suspect import Suspect
from loopcanary.diagnosis.samples.views import weigh_stacks
from loopcanary.diagnosis.title import short_place
from loopcanary.model import Cause
from loopcanary.words.sentences import say

_NAME = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_GOES_ON = (".", "(")  # what follows a name that is only loaded: `for row in rows` runs code of the object


def tell_first_use(case: StallCase, verdict: Verdict, suspect: Suspect | None) -> Verdict:
    """The verdict with evidence of the name whose use resolved a lazy import, and of the import's statement.
    Unchanged if these are not found for certain, or if another thread imports the module."""
    first = verdict.first
    waits = any(getattr(one, "code", None) == "module-lock" for one in verdict.evidence)
    if first is None or first.cause is not Cause.IMPORT or suspect is None or waits:
        return verdict
    view = suspect.below[0] if suspect.below else suspect.view
    pairs = [pair for stack, _ in weigh_stacks(first.explained) for pair in pairwise(stack.work)]
    site, file = case.observation.sites.of(view), view.function.file
    name, follows = site.text or "", (site.source or "")[site.end_column - 1 :]
    if not any(outer is view and inner.role is Role.IMPORT for inner, outer in pairs):
        return verdict
    found = list(_statements(case, file, name)) if _NAME.fullmatch(name) else []
    is_marked = len(found) == 1 and found[0][2].startswith("lazy ")
    if len(found) != 1 or not (is_marked or follows.startswith(_GOES_ON)):
        return verdict
    bound_in, line, statement = found[0]
    used, bound = short_place(file, view.frame.line), f"{bound_in}:{line}"
    told = say("first-use", name=name, place=used, statement=statement, bound_at=bound)
    if suspect.in_app and not suspect.below:
        topic = "lazy-import" if is_marked else "late-import"
        values = {"call": name, "at": f"({short_place(bound_in, line)})"}
        first = replace(first, title=say("title:lazy-import", name=name), topic=topic, values=values)
    return replace(verdict, evidence=(*verdict.evidence, told), findings=(first, *verdict.findings[1:]))


def _statements(case: StallCase, file: str, name: str) -> Iterator[tuple[str, int, str]]:
    """File, line and text of what may have bound a name of a file: there, or in the module that it names."""
    lines_of = case.observation.sites.lines_of
    yield from ((file, *found) for found in lazy_statements(lines_of(file), name))
    module, _, attribute = name.rpartition(".")
    path = f"/{module.replace('.', '/')}"
    for one in dict.fromkeys(imported_files(lines_of(file), file, name, case.paths) if module else ()):
        if one.endswith((f"{path}.py", f"{path}/__init__.py")):
            yield from ((one, *found) for found in lazy_statements(lines_of(one), attribute))


_FROM = re.compile(r"^[ \t]*(?:lazy +)?from +(\.*)([\w.]*) +import +(\([^)]*\)|.*)", re.MULTILINE)
_IMPORT = re.compile(r"^[ \t]*(?:lazy +)?import +(.*)", re.MULTILINE)
_MAY_BE_LAZY = re.compile(r"^(?:[ \t]*lazy +)?(?:from +[\w.]+ +)?import +(\([^)]*\)|.*)", re.MULTILINE)
"""PEP 810: with the keyword; or of the module itself, where a setting makes such imports lazy."""
_COMMENT = re.compile(r"#.*")
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


def imported_name(lines: Sequence[str], name: str) -> str | None:
    """A dotted name as the imports have it: `pd.read_csv` after `import pandas as pd` is `pandas.read_csv`.
    None: it begins with no module or name that is imported."""
    head, dot, rest = name.partition(".")
    text = "\n".join(lines)
    for dots, module, items in _FROM.findall(text):
        for item, alias in _ITEM.findall(items.partition("#")[0]):
            if (alias or item) == head and not dots:
                return f"{module}.{item}{dot}{rest}"
    for items in _IMPORT.findall(text):
        for item, alias in _ITEM.findall(items.partition("#")[0]):
            if (alias or item.partition(".")[0]) == head:
                return f"{item if alias else head}{dot}{rest}"
    return None


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


def lazy_statements(lines: Sequence[str], name: str) -> Iterator[tuple[int, str]]:
    """Line and text of the import statements of a module that bind `name`, or import it, and may be lazy."""
    text = _COMMENT.sub("", "\n".join(lines))
    for match in _MAY_BE_LAZY.finditer(text):
        bound = [alias or item for item, alias in _ITEM.findall(match[1])]
        if name in bound or name in [one.partition(".")[0] for one in bound]:
            yield text.count("\n", 0, match.start()) + 1, shorten(one_line(match[0].split("\n")))
