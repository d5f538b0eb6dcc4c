"""Which kinds of loops are watched here: for `loopcanary doctor`.

Each library that is installed is imported by a child process under our engine: what its probe then says of
itself is what a program would get.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from importlib.machinery import PathFinder
from importlib.metadata import packages_distributions, version
from pathlib import Path

from loopcanary.model.config import NATIVE, PORTABLE
from loopcanary.registry import LOOPS, REGISTRY, LoopKind

Row = tuple[str, str, str]

_CHILD = """
import importlib, json, sys
import loopcanary
canary = loopcanary.install(store=sys.argv[1], console="off", engine=sys.argv[3])
failed = {}
for kind, modules in json.loads(sys.argv[2]).items():
    for module in modules:  # several are different makes of one library, which need not go together
        try:
            importlib.import_module(module)
        except Exception as error:
            failed.setdefault(kind, f"{module} cannot be imported: {type(error).__name__}: {error}")
        else:
            failed.pop(kind, None)
            break
refused = canary.boundary.reasons()
print(json.dumps({"failed": failed, "refused": refused, "notes": canary.probe_notes()}))
loopcanary.uninstall()
"""
_CHILD_S = 60


def loop_facts(engine: str = NATIVE) -> list[Row]:
    """(name, `ok` | `off` | `problem`, detail) for each kind of loop whose library is here, and one row for
    the others. `engine`: the native one, or the portable one."""
    kinds: list[LoopKind] = [kind for _, kind in REGISTRY.loaded(LOOPS)]
    installed = {kind: modules for kind in kinds if (modules := _installed(kind))}
    watched = {kind: modules for kind, modules in installed.items() if _is_watched(kind, engine)}
    if not installed:
        return []
    with tempfile.TemporaryDirectory(prefix="loopcanary-") as folder:
        told = _tried(watched, Path(folder), engine) if watched else {}
    packages = packages_distributions()  # reads a file of each package that is installed
    rows = [
        _row(kind, modules, told, packages)
        if kind in watched
        else (f"loop {kind.kind}", "off", "not watched by the portable engine")
        for kind, modules in installed.items()
    ]
    absent = [kind.kind for kind in kinds if kind not in installed]
    if absent:
        rows.append(("other loops", "off", f"not installed here: {', '.join(absent)}"))
    return rows


def _is_watched(kind: LoopKind, engine: str) -> bool:
    return (kind.portable if engine == PORTABLE else kind.probe) is not None


def _installed(kind: LoopKind) -> list[str]:
    """The awaited modules whose top-level package can be found; nothing is imported."""
    return [
        module for module in kind.awaits if PathFinder.find_spec(module.partition(".")[0], None) is not None
    ]


def _tried(
    installed: Mapping[LoopKind, Sequence[str]], folder: Path, engine: str
) -> Mapping[str, Mapping[str, object]]:
    """What a child says of all of them; where it dies, of each one by itself."""
    told = _child(installed, folder, engine)
    if told is not None or len(installed) == 1:
        return told or {"failed": {kind.kind: "the child process that tried it died" for kind in installed}}
    each = [_tried({kind: modules}, folder, engine) for kind, modules in installed.items()]
    return {
        part: {kind: said for one in each for kind, said in one.get(part, {}).items()}
        for part in ("failed", "refused", "notes")
    }


def _child(
    installed: Mapping[LoopKind, Sequence[str]], folder: Path, engine: str
) -> dict[str, dict[str, object]] | None:
    modules = json.dumps({kind.kind: list(modules) for kind, modules in installed.items()})
    command = [sys.executable, "-P", "-c", _CHILD, str(folder / "store"), modules, engine]
    try:
        ran = subprocess.run(command, check=True, capture_output=True, timeout=_CHILD_S, cwd=folder)  # noqa: S603 - ourselves
        told: dict[str, dict[str, object]] = json.loads(ran.stdout.splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return None
    return told


def _row(
    kind: LoopKind,
    modules: Sequence[str],
    told: Mapping[str, Mapping[str, object]],
    packages: Mapping[str, Sequence[str]],
) -> Row:
    name = f"loop {kind.kind}"
    refused = told.get("refused", {}).get(f"probe {kind.kind}")
    if refused is not None:
        return name, "problem", f"not watched: {refused}"
    failed = told.get("failed", {}).get(kind.kind)
    notes = told.get("notes", {}).get(kind.kind, [])
    versions = ", ".join(_versions(modules, packages)) or "comes with Python"
    said = [versions, *(notes if isinstance(notes, list) else [])]
    if failed is not None and not notes:
        return name, "off", str(failed)
    return name, "ok", "; ".join(map(str, said))


def _versions(modules: Sequence[str], packages: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Versions of the distributions that bring these modules; none for modules of Python itself."""
    known = {module.partition(".")[0] for module in modules} & packages.keys()
    # Of several that bring parts of one package, the one that goes by its name.
    for distribution in sorted(min(packages[package], key=len) for package in known):
        yield f"{distribution} {version(distribution)}"
