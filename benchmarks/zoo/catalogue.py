"""The kinds, and what is known of each: read from their source, never imported.

A line that ends in `# <- culprit` is where the program stalls; one that ends in `# <- holder` is what another
thread does meanwhile, where that thread is guilty. EXPECT says the rest:

    cause      the admissible words, the best one first; more than one only where physics has it so
    thread     the guilty thread's name, where there is a holder; several where several share the guilt
    control    nothing may be reported
    about      the duration is known about, not exactly, and is not judged
    killed     it never ends, and is killed by SIGKILL
    loops      kinds of loop on which it can play: their names; "all" where it awaits nothing but pauses;
               "others" for all but asyncio's; asyncio and uvloop, if not said
    watchers   the only watchers that can be right about it; all, if not said
    needs      what is installed for it, as in requirements.txt; where it is not, the kind is not played
    advice     good advice has one of these words in it
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from zoo import loops

KINDS = Path(__file__).parent / "kinds"
LOOPS = tuple(loops.OF_ASYNCIO)
_GROUPS = {"all": tuple(loops.ALL), "others": tuple(loops.OTHERS)}
CULPRIT, HOLDER = "# <- culprit", "# <- holder"
_WORDS = {"cause", "thread", "about", "control", "killed", "loops", "watchers", "needs", "advice"}


@dataclass(frozen=True, slots=True)
class Place:
    """A function, and its marked lines."""

    function: str
    lines: frozenset[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One program of the zoo, and the truth about it."""

    name: str
    path: Path
    summary: str
    causes: tuple[str, ...]
    control: bool
    about: bool
    """Its duration is not known exactly."""
    killed: bool
    loops: tuple[str, ...]
    watchers: tuple[str, ...]
    culprits: tuple[Place, ...]
    """Functions that may be blamed. None where the program is not to blame."""
    holders: tuple[Place, ...]
    """Functions of other threads, any of which may be named."""
    threads: tuple[str, ...]
    """Names of these threads."""
    needs: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()


def read(path: Path) -> Kind:
    """The kind in this file. ValueError if it does not say what a kind has to."""
    source = path.read_text()
    tree = ast.parse(source)
    expect = _expectation(tree, path)
    kind = Kind(
        name=path.stem,
        path=path,
        summary=(ast.get_docstring(tree) or "").partition("\n")[0],
        causes=tuple(expect.get("cause", ())),
        control=expect.get("control", False),
        about=expect.get("about", False),
        killed=expect.get("killed", False),
        loops=_loops(expect.get("loops", LOOPS), path),
        watchers=tuple(expect.get("watchers", ())),
        culprits=_places(source, tree, CULPRIT),
        holders=_places(source, tree, HOLDER),
        threads=tuple(expect.get("thread", ())),
        needs=tuple(expect.get("needs", ())),
        advice=tuple(expect.get("advice", ())),
    )
    if not kind.summary:
        raise ValueError(f"{path}: has no docstring")
    if kind.control == bool(kind.causes):
        raise ValueError(f"{path}: a control expects no cause, any other kind at least one")
    if kind.control and kind.culprits:
        raise ValueError(f"{path}: a control has no culprit")
    if bool(kind.holders) != bool(kind.threads):
        raise ValueError(f"{path}: a holder has a thread, and a guilty thread does something")
    return kind


def read_all() -> list[Kind]:
    """Every kind, controls last."""
    kinds = [read(path) for path in sorted(KINDS.glob("*.py"))]
    return sorted(kinds, key=lambda kind: (kind.control, kind.killed, kind.name))


def _loops(said: str | Sequence[str], path: Path) -> tuple[str, ...]:
    names = _GROUPS.get(said, (said,)) if isinstance(said, str) else tuple(said)
    if unknown := set(names) - loops.ALL.keys():
        raise ValueError(f"{path}: there is no such loop as {', '.join(sorted(unknown))}")
    return names


def _expectation(tree: ast.Module, path: Path) -> dict[str, Any]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "EXPECT":
            expect = ast.literal_eval(node.value)
            if unknown := expect.keys() - _WORDS:
                raise ValueError(f"{path}: EXPECT has no {', '.join(sorted(unknown))}")
            return expect
    raise ValueError(f"{path}: has no EXPECT")


def _places(source: str, tree: ast.Module, mark: str) -> tuple[Place, ...]:
    lines: dict[str, set[int]] = {}
    for number, line in enumerate(source.splitlines(), start=1):
        if line.endswith(mark):
            lines.setdefault(_function_at(tree, number), set()).add(number)
    return tuple(Place(function, frozenset(found)) for function, found in lines.items())


def _function_at(tree: ast.Module, line: int) -> str:
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.lineno <= line <= (node.end_lineno or 0)
    ]
    return max(around, key=lambda node: node.lineno).name if around else "<module>"
