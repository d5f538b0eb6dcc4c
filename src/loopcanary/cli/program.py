"""The part of a command line that is the program's: where it begins, and how Python is started on it."""

from __future__ import annotations

import os
import site
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

HOOK = "loopcanary.pth"
_MODULE_AND_CODE = ("-m", "-c")


def split(arguments: Sequence[str], with_value: Collection[str]) -> tuple[list[str], list[str]]:
    """Our own options, and the rest: from SCRIPT, -m or -c on everything is the program's, as in `python`.

    `with_value`: our options whose value is the next argument.
    """
    words = list(arguments)
    index = 0
    while index < len(words):
        word = words[index]
        if word == "--":
            return words[:index], words[index + 1 :]
        is_program = word == "-" or not word.startswith("-") or word[:2] in _MODULE_AND_CODE
        if is_program:
            return words[:index], words[index:]
        index += 2 if word in with_value else 1
    return words, []


def interpreter_flags() -> list[str]:
    """The flags that this interpreter was started with, so that the program gets the same."""
    # Private, and the very function that multiprocessing and CPython's own tests rely on for this.
    from subprocess import _args_from_interpreter_flags  # type: ignore[attr-defined]

    return list(_args_from_interpreter_flags())


def obstacle() -> str | None:
    """Why a program started with this interpreter's flags could not be watched; None where it can."""
    if sys.flags.ignore_environment:
        return "python -E and -I ignore the environment, by which loopcanary starts: leave them out"
    if sys.flags.no_site:
        return "python -S leaves out the site module, by which loopcanary starts: leave it out"
    return None


def hook_is_installed() -> bool:
    """Whether a Python started now runs our .pth file."""
    folders = [*site.getsitepackages(), *([site.getusersitepackages()] if site.ENABLE_USER_SITE else [])]
    return any((Path(folder) / HOOK).is_file() for folder in folders)


def with_bootstrap(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment with our sitecustomize first on the path, for where the .pth file is not installed."""
    folder = str(Path(__file__).parent.parent / "_bootstrap")
    before = environment.get("PYTHONPATH")
    return {**environment, "PYTHONPATH": os.pathsep.join([folder, before] if before else [folder])}
