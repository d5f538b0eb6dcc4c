"""Watches a program that nobody changed: LOOPCANARY=1 in its environment.

`loopcanary.pth`, at the root of site-packages, calls `start` while the interpreter sets itself up, before
the program's first line. It also runs in every child that inherits the environment. Where no `.pth` file
is read, as with a checkout on PYTHONPATH, a `sitecustomize` may call `start` as well: only the first call
in a process counts. `-E` and `-I` mean "ignore the environment", and so does the `.pth` file then; `-S`
reads none.

Some processes are tools around the program and not the program: installers, loopcanary's own commands
and multiprocessing's resource tracker. They are left alone. A worker of multiprocessing (spawn, forkserver)
is watched: it runs the program's code. So is whatever `loopcanary run` was given to run, which it names by
its process id in LOOPCANARY_RUN_PID.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from pathlib import PurePath

_TOOL_MODULES = frozenset({"build", "ensurepip", "loopcanary", "pip", "uv", "venv", "virtualenv"})
_TOOL_SCRIPTS = frozenset({"__pip-runner__", "_in_process", "loopcanary", "uv", "virtualenv"})
_RESOURCE_TRACKER = "from multiprocessing.resource_tracker import main"
# Interpreter options whose value is the next argument.
_OPTIONS_WITH_VALUE = frozenset({"-W", "-X", "--check-hash-based-pycs"})

LOOPS_BEGIN = "asyncio.base_events"
"""The module without which no loop that we know of is made."""

_called = False


def start() -> None:
    """Starts the engine with its settings from the environment and files; once a process, never raises.

    A failure is one line on stderr for who ran `loopcanary run`. It is silent where only the environment
    asked, since nobody may be there to read it; LOOPCANARY_DEBUG=1 prints it there too.
    """
    global _called  # noqa: PLW0603 - once a process
    asked_for = os.environ.get("LOOPCANARY_RUN_PID") == str(os.getpid())
    if _called or (is_tool(sys.orig_argv) and not asked_for):
        return
    _called = True
    try:
        import loopcanary  # a process that is left alone does not pay for it

        loopcanary.install(_from_startup=True)
    except Exception as error:  # noqa: BLE001 - the program must start whatever happens here
        if asked_for or os.environ.get("LOOPCANARY_DEBUG"):
            _say(f"loopcanary: not started: {type(error).__name__}: {error}")


def is_tool(orig_argv: Sequence[str]) -> bool:
    """Says whether this command line (`sys.orig_argv`) is a tool's and not a program's.

    The command line is read rather than `sys.argv`: that has no module name yet when site runs.
    """
    arguments = iter(orig_argv[1:])
    for argument in arguments:
        if argument in _OPTIONS_WITH_VALUE:
            next(arguments, None)
        elif argument.startswith("--"):
            continue
        elif argument.startswith("-") and argument != "-":
            flag, attached = _command_flag(argument)
            if flag is None:
                continue
            value = attached or next(arguments, "")
            return _is_tool_module(value) if flag == "m" else value.startswith(_RESOURCE_TRACKER)
        else:
            return _is_tool_script(PurePath(argument))
    return False


def _command_flag(argument: str) -> tuple[str | None, str]:
    """Finds `m` or `c` in a cluster of short options (`-Im`, `-cpass`), and what is attached to it."""
    for index, letter in enumerate(argument[1:], start=1):
        if letter in "mc":
            return letter, argument[index + 1 :]
        if letter in "WX":
            break
    return None, ""


def _is_tool_module(name: str) -> bool:
    return name.partition(".")[0] in _TOOL_MODULES


def _is_tool_script(path: PurePath) -> bool:
    name = path.stem if path.suffix in {".py", ".exe"} else path.name
    is_pip = name == "pip" or (name.startswith("pip") and name[3:].replace(".", "").isdigit())
    return is_pip or name in _TOOL_SCRIPTS


def _say(line: str) -> None:
    with contextlib.suppress(AttributeError, OSError, ValueError):  # stderr not there, full or closed
        sys.stderr.write(line + "\n")
