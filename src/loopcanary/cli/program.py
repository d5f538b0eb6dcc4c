"""How `loopcanary run` starts Python on a program; a plain line is read here, too, without click.

All of it runs before the program does: nothing large is imported. Help, errors, notices and completion are
those of the command (commands/run.py). Where one is due, nothing has happened yet: the command begins anew.
"""

from __future__ import annotations

import os
import sys
import time

from loopcanary.cli.options import RUN_ONLY, SETTINGS, given

TYPE_CHECKING = False  # typing is not loaded for it
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from typing import Any, NoReturn

    from loopcanary.model import Config

_MODULE_AND_CODE = ("-m", "-c")


def split(arguments: Sequence[str], with_value: Collection[str]) -> tuple[list[str], list[str]]:
    """Splits a line into our options and the program, which begins at SCRIPT, -m or -c as in `python`.
    `with_value` are our options whose value is the next word."""
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
        raise UnfitProgramError("Python does not know its own executable: call it by its full path")
    words = [sys.executable, *_interpreter_flags(), _script(program[0]), *program[1:]]
    if os.environ.get("LOOPCANARY") == "0":
        return words, dict(os.environ), None
    if problem := _obstacle():
        raise UnfitProgramError(problem)
    if settings.get("fail_on_stall") and not _has_native_engine():
        raise UnfitProgramError(
            "--fail-on-stall needs the native engine, which is not available: `loopcanary doctor` says why"
        )
    return words, *watched_environment(load(settings))


def _script(name: str) -> str:
    """The command of a package that is installed for this Python, where its name was given: `uvicorn`."""
    if os.path.basename(name) != name or os.path.exists(name):  # noqa: PTH110, PTH119 - a plain line is quick
        return name
    beside = os.path.join(os.path.dirname(sys.executable), name)  # noqa: PTH118, PTH120
    try:
        with open(beside, "rb") as file:  # noqa: PTH123
            start = file.read(512)
    except OSError:
        return name
    return beside if start.startswith(b"#!") and b"python" in start else name


def start(words: list[str], environment: dict[str, str]) -> int:
    """Turns this process into the program; returns only on Windows, with its exit status."""
    become = _run_as_child if sys.platform == "win32" else _become
    return become(words, environment)


def _become(words: list[str], environment: dict[str, str]) -> NoReturn:
    for stream in filter(None, (sys.stdout, sys.stderr)):  # None: closed
        stream.flush()
    environment["LOOPCANARY_RUN_NS"] = str(time.monotonic_ns())
    os.execve(sys.executable, words, environment)  # noqa: S606 - the user's own program


def _run_as_child(words: list[str], environment: dict[str, str]) -> int:
    """Runs the program as a child: exec on Windows starts another process and ends this one, which shells
    take for the program's end."""
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
    """Why a program could not be watched with this interpreter's flags; None: it can."""
    if sys.flags.ignore_environment:
        return "loopcanary starts by environment variables, which python -E and -I ignore: leave them out"
    if sys.flags.no_site:
        return "loopcanary starts by the site module, which python -S skips: leave it out"
    return None


def _has_native_engine() -> bool:
    from importlib.util import find_spec

    return find_spec("loopcanary._native") is not None


def watched_environment(config: Config) -> tuple[dict[str, str], str | None]:
    """This environment with the settings in force, and a notice about the store."""
    from loopcanary import _lead_children
    from loopcanary.config import BY_KEY, settings_as_environment
    from loopcanary.model.config import OFF, ON
    from loopcanary.whose_stderr import STDERR, own_stderr

    store, notice = _store(config)
    environment = {
        **os.environ,
        **settings_as_environment(config),
        BY_KEY["store"].variable: store,
        BY_KEY["console"].variable: OFF if config.console == OFF else ON,
        "LOOPCANARY": "1",
        "LOOPCANARY_RUN_PID": str(os.getpid()),
        STDERR: own_stderr(),
    }
    _lead_children(environment, to_us=True)
    return environment, notice


def _store(config: Config) -> tuple[str, str | None]:
    """The store's absolute folder, so that the program and its children store in one place wherever they
    change to (empty: no store can be used), and a notice about it."""
    from loopcanary.config import usual_store
    from loopcanary.model.config import OFF

    if (folder := usual_store(config)) is not None:
        return folder, None
    from loopcanary.store import locate

    location = locate(config.store)
    store = str(location.folder.absolute()) if location.is_usable else ""
    # Without a store the program's own process says so, if it may speak.
    return store, location.notice if location.is_usable or config.console == OFF else None


# typing is not loaded for it
_OPTIONS = {option.name: option for option in (*SETTINGS, *RUN_ONLY)}
_WITH_VALUE = frozenset(option.name for option in _OPTIONS.values() if not option.is_flag)
_COMPLETION = "_LOOPCANARY_COMPLETE"
"""Shells set it to ask click for completions."""


def start_plain_line(line: Sequence[str]) -> None:
    """Turns this process into the program of a line, what follows `loopcanary run`. Returns where click's
    command has to read it."""
    if sys.platform == "win32" or os.environ.get(_COMPLETION):
        return
    ours, program = split(line, _WITH_VALUE)
    settings = _read(ours)
    if settings is None:
        return
    try:
        words, environment, notice = prepared(program, given(settings), _load)
    except (UnfitProgramError, ValueError):  # ConfigError is one
        return
    if notice is None:
        start(words, environment)


def _load(settings: dict[str, Any]) -> Config:
    from loopcanary.config import load

    return load(**settings)


def _read(words: Sequence[str]) -> dict[str, Any] | None:
    """The options by key, as click gives them to the command; None: one of them is bad."""
    values: dict[str, list[str]] = {}
    rest = iter(words)
    for word in rest:
        name, equals, attached = word.partition("=")
        option = _OPTIONS.get(name)
        if option is None or (option.is_flag and equals):
            return None
        value = attached if equals or option.is_flag else next(rest, None)
        if value is None:
            return None
        values.setdefault(name, []).append(value)
    settings: dict[str, Any] = {}
    for name, found in values.items():
        option = _OPTIONS[name]
        counting = found if option.repeats else found[-1:]
        if not option.is_flag and not all(map(option.takes, counting)):
            return None
        settings[option.key] = True if option.is_flag else tuple(counting) if option.repeats else counting[0]
    return settings
