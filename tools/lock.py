"""Writes constraints.txt: the exact versions with which the package is built, tested and checked.

On each CPython pip is asked what it would install for all extras of pyproject.toml. A line holds for all of
them, or says for which. Loops and servers that have no wheel for one have no line for it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence

from extras import BUILD, CONSTRAINTS, PACKAGE, TREE, requirements
from interpreters import SID_ROOT, VERSIONS, Interpreter, find

_HEAD = """\
# Exact versions of what the package is built, tested and checked with, so that two runs test the same.
# Written by `make lock`. What users install is for pyproject.toml to say.
"""
_NEEDED = (BUILD, PACKAGE, "test", "all", "dev")
# Where the machine has none that will do.
_WANTED_BY_BACKEND = ("cmake", "ninja")
_WHERE_POSSIBLE = ("loops", "servers", "browser", "frozen")
Versions = dict[str, str]
"""Exact versions by the name of the package."""


def main() -> None:
    """Writes the file anew. SidRootError where a CPython cannot be had: then not all lines would be right."""
    found: dict[str, Versions] = {}
    for version in VERSIONS:
        interpreter = find(version, SID_ROOT)
        found[version] = _resolve(interpreter)
        print(f"CPython {version}: {len(found[version])} packages", flush=True)
    CONSTRAINTS.write_text(_HEAD + "".join(f"{line}\n" for line in lines(found)), encoding="utf-8")


def lines(found: dict[str, Versions]) -> Iterator[str]:
    """One line a package and version, with the CPythons that it is for, where it is not for all."""
    for name in sorted({name for versions in found.values() for name in versions}):
        exact = {python: versions[name] for python, versions in found.items() if name in versions}
        for version in dict.fromkeys(exact.values()):
            pythons = [python for python in exact if exact[python] == version]
            yield f"{name}=={version}{_marker(pythons, found)}"


def _marker(pythons: Sequence[str], found: dict[str, Versions]) -> str:
    if len(pythons) == len(found):
        return ""
    return "; " + " or ".join(f'python_version == "{python}"' for python in pythons)


def _resolve(interpreter: Interpreter) -> Versions:
    folder = f"build/lock/{interpreter.version}"
    _run(interpreter, [interpreter.path, "-m", "venv", "--clear", folder])
    pip = [f"{folder}/bin/python", "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
    wanted = [
        one
        for one in requirements(_WHERE_POSSIBLE)
        if _succeeds(interpreter, [*pip, "--no-deps", "--only-binary=:all:", one])
    ]
    report = f"{folder}/report.json"
    needed = [*requirements(_NEEDED), *_WANTED_BY_BACKEND]
    _run(interpreter, [*pip, f"--report={report}", *needed, *wanted])
    installed = json.loads((TREE / report).read_text(encoding="utf-8"))["install"]
    return {
        one["metadata"]["name"].lower().replace("_", "-"): one["metadata"]["version"] for one in installed
    }


def _succeeds(interpreter: Interpreter, command: Sequence[str]) -> bool:
    return subprocess.run(interpreter.command(command), check=False, capture_output=True).returncode == 0


def _run(interpreter: Interpreter, command: Sequence[str]) -> None:
    if subprocess.run(interpreter.command(command), check=False).returncode != 0:
        sys.exit(f"CPython {interpreter.version}: no versions found, see above")


if __name__ == "__main__":
    main()
