"""The part of a command line that is the program's: where it begins, and how Python is started on it.

All of it runs before the program does: nothing large is imported.
"""

from __future__ import annotations

import os
import site
import sys
import time

TYPE_CHECKING = False  # typing is not loaded for it
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from typing import Any, NoReturn

    from loopcanary.model import Config

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


class UnfitProgramError(Exception):
    """Why nothing is started, for people."""


def prepared(
    program: Sequence[str], settings: dict[str, Any], load: Callable[[dict[str, Any]], Config]
) -> tuple[list[str], dict[str, str], str | None]:
    """The words and the environment with which Python is started on the program, and a notice for people.

    `settings`: those that were given as options; `load` finds the others. Raises UnfitProgramError, and what
    `load` raises.
    """
    if not program:
        raise UnfitProgramError("nothing to run: name a script, -m MODULE or -c CODE")
    if not sys.executable:
        raise UnfitProgramError("Python does not know where its own executable is")
    words = [sys.executable, *_interpreter_flags(), *program]
    if os.environ.get("LOOPCANARY") == "0":
        return words, dict(os.environ), None
    if problem := _obstacle():
        raise UnfitProgramError(problem)
    if settings.get("fail_on_stall") and not _has_native_engine():
        raise UnfitProgramError(
            "--fail-on-stall needs the native engine, which is not here: see loopcanary doctor"
        )
    return words, *watched_environment(load(settings))


def start(words: list[str], environment: dict[str, str]) -> int:
    """Turns this process into the program, and does not come back; on Windows its exit status."""
    become = _run_as_child if sys.platform == "win32" else _become
    return become(words, environment)


def _become(words: list[str], environment: dict[str, str]) -> NoReturn:
    for stream in filter(None, (sys.stdout, sys.stderr)):  # None: closed
        stream.flush()
    environment["LOOPCANARY_RUN_NS"] = str(time.monotonic_ns())
    os.execve(sys.executable, words, environment)  # noqa: S606 - the user's own program


def _run_as_child(words: list[str], environment: dict[str, str]) -> int:
    """Runs the program where exec starts another process and ends this one, which shells take for its end."""
    import subprocess

    return subprocess.call(words, env=environment)  # noqa: S603 - the user's own program


def _interpreter_flags() -> list[str]:
    """The flags that this interpreter was started with, so that the program gets the same.

    Those that come from the environment come from it again.
    """
    first = sys.orig_argv[1:2]
    if first and (not first[0].startswith("-") or first[0][:2] in _MODULE_AND_CODE):
        return []
    # Private, and the very function that multiprocessing and CPython's own tests rely on for this.
    from subprocess import _args_from_interpreter_flags  # type: ignore[attr-defined]

    return list(_args_from_interpreter_flags())


def _obstacle() -> str | None:
    """Why a program started with this interpreter's flags could not be watched; None where it can."""
    if sys.flags.ignore_environment:
        return "python -E and -I ignore the environment, by which loopcanary starts: leave them out"
    if sys.flags.no_site:
        return "python -S leaves out the site module, by which loopcanary starts: leave it out"
    return None


def _has_native_engine() -> bool:
    from importlib.util import find_spec

    return find_spec("loopcanary._native") is not None


def watched_environment(config: Config) -> tuple[dict[str, str], str | None]:
    """This environment with the settings in force, and what is to be said about the store."""
    from loopcanary.config import BY_KEY, settings_as_environment
    from loopcanary.whose_stderr import STDERR, own_stderr

    store, notice = _store(config)
    console = BY_KEY["console"]
    environment = {
        **os.environ,
        **settings_as_environment(config),
        BY_KEY["store"].variable: store,
        console.variable: console.kind.write(not config.quiet),
        "LOOPCANARY": "1",
        "LOOPCANARY_RUN_PID": str(os.getpid()),
        STDERR: own_stderr(),
    }
    if not _hook_is_installed():
        environment = _with_bootstrap(environment)
    return environment, notice


def _store(config: Config) -> tuple[str, str | None]:
    """The store's folder, absolute, so that the program and its children store in one place wherever they
    change to; empty: none is of use. And what is to be said about it."""
    from loopcanary.config import usual_store

    if (folder := usual_store(config)) is not None:
        return folder, None
    from loopcanary.store import locate

    location = locate()
    store = str(location.folder.absolute()) if location.is_usable else ""
    # Without a store the program's own process says so, if it may speak.
    return store, location.notice if location.is_usable or config.quiet else None


def _hook_is_installed() -> bool:
    """Whether a Python started now runs our .pth file."""
    folders = [*site.getsitepackages(), *([site.getusersitepackages()] if site.ENABLE_USER_SITE else [])]
    return any(os.path.isfile(os.path.join(folder, HOOK)) for folder in folders)  # noqa: PTH113, PTH118


def _with_bootstrap(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment with our sitecustomize first on the path, for where the .pth file is not installed."""
    package = os.path.dirname(os.path.dirname(__file__))  # noqa: PTH120 - pathlib is not loaded
    before = environment.get("PYTHONPATH")
    path = [os.path.join(package, "_bootstrap"), *([before] if before else [])]  # noqa: PTH118
    return {**environment, "PYTHONPATH": os.pathsep.join(path)}
