"""The CPythons that loopcanary supports, and where each of them can be had.

One is looked for on PATH and among pyenv's. What is not here is taken from Debian sid, in a root folder of
its own that debootstrap makes (as root, on a system that has or can install debootstrap; sid_root.py).
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from sid_root import SidRoot

TREE = Path(__file__).resolve().parent.parent
VERSIONS = ("3.11", "3.12", "3.13", "3.14", "3.15")
SID_ROOT = Path(os.environ.get("LOOPCANARY_SID_ROOT", "/var/cache/loopcanary/sid"))


# A make that called a script must not pass its own flags and variables on.
_OF_MAKE = frozenset({"MAKEFLAGS", "MAKELEVEL", "MFLAGS", "MAKEOVERRIDES"})


def outside_make() -> dict[str, str]:
    """This process's environment, as it is where no make called it."""
    return {name: value for name, value in os.environ.items() if name not in _OF_MAKE}


class Place(Protocol):
    """Somewhere that `make` can run with one interpreter."""

    def command(self, tree: Path, command: Sequence[str]) -> list[str]:
        """What to execute here so that `command` runs in the tree there."""


class Here:
    """This machine."""

    def command(self, tree: Path, command: Sequence[str]) -> list[str]:
        """The command itself."""
        return ["env", f"--chdir={tree}", *command]


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpreter:
    """One CPython: where, and by which name."""

    version: str
    path: str
    place: Place

    def command(self, command: Sequence[str]) -> list[str]:
        """What to execute here so that `command` runs in the tree, where the interpreter is."""
        return self.place.command(TREE, command)


def find(version: str, sid_root: Path) -> Interpreter:
    """The interpreter of this version; SidRootError, which says why, where there is none."""
    return find_here(version) or _take_from_sid(version, SidRoot(sid_root))


def find_here(version: str) -> Interpreter | None:
    """The interpreter of this version on this machine; None where there is none."""
    for candidate in _candidates(version):
        if _is_cpython(candidate, version):
            return Interpreter(version=version, path=candidate, place=Here())
    return None


def _candidates(version: str) -> Iterator[str]:
    # pyenv's own folders come first: its shims answer to a name only in some folders.
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    with contextlib.suppress(OSError):  # another user's, say
        folders = sorted((pyenv / "versions").glob(f"{version}.*"), key=_patch_level, reverse=True)
        yield from (str(folder / "bin" / "python") for folder in folders)
    yield f"python{version}"


def _patch_level(folder: Path) -> int:
    patch = folder.name.split(".")[2]
    return int(patch) if patch.isdigit() else -1  # 3.15.0b1, 3.13.1t: last


def _is_cpython(python: str, version: str) -> bool:
    """Says whether `python` runs and is this version of CPython, with a GIL."""
    question = (
        "import sys, sysconfig;"
        "print('%d.%d' % sys.version_info[:2], sys.implementation.name,"
        " bool(sysconfig.get_config_var('Py_GIL_DISABLED')))"
    )
    try:
        answer = subprocess.run(
            [python, "-c", question], capture_output=True, text=True, check=False, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return answer.stdout.split() == [version, "cpython", "False"]


def _take_from_sid(version: str, root: SidRoot) -> Interpreter:
    root.provide(version)
    return Interpreter(version=version, path=f"/usr/bin/python{version}", place=root)
