"""Watches an unchanged program: LOOPCANARY=1 in its environment.

`start` is called while the interpreter sets itself up, before the program's first line: by the
`sitecustomize` in `_bootstrap`, whose folder `loopcanary run` and every watched program put on the PYTHONPATH
of their children, and by the `.pth` file of the distribution loopcanary-auto. Only the first call in a
process counts. `-E` and `-I` mean "ignore the environment": neither calls then. `-S` reads neither.

Some processes are tools around the program and not the program: installers, loopcanary's own commands
and multiprocessing's resource tracker. They are left alone. A worker of multiprocessing (spawn, forkserver)
is watched: it runs the program's code. So is whatever `loopcanary run` was given to run, which it names by
its process id in LOOPCANARY_RUN_PID.

Every interpreter that inherits the environment pays for what is here. So nothing is made before the program
imports a library of loops, but for what `loopcanary run` was given.
"""

from __future__ import annotations

import os
import sys
import time

import loopcanary

TYPE_CHECKING = False  # typing is not loaded for it
if TYPE_CHECKING:
    from collections.abc import Sequence

    from loopcanary.probes import ImportWatch

_TOOL_MODULES = frozenset({"build", "ensurepip", "loopcanary", "pip", "uv", "venv", "virtualenv"})
_TOOL_SCRIPTS = frozenset({"__pip-runner__", "_in_process", "loopcanary", "uv", "virtualenv"})
_RESOURCE_TRACKER = "from multiprocessing.resource_tracker import main"
_TRUE = ("1", "true", "yes", "on")
"""As config.kinds has it, which is loaded later."""
# Interpreter options whose value is the next argument.
_OPTIONS_WITH_VALUE = frozenset({"-W", "-X", "--check-hash-based-pycs"})

_called = False
_waiting: ImportWatch | None = None


def start() -> None:
    """Makes this process a watched one, with settings from the environment and files: at once for what
    `loopcanary run` was given and where the environment has starts recorded, else when there may be a loop.
    Once a process, never raises.

    A failure is one line on stderr under `loopcanary run`. It is silent if only the environment asked, since
    there may be no reader; LOOPCANARY_DEBUG=1 prints it there too.
    """
    global _called, _waiting  # noqa: PLW0603 - once a process
    begun_ns = time.monotonic_ns()
    if "LOOPCANARY_RUN_STDERR" not in os.environ:
        from loopcanary.whose_stderr import tell_children

        tell_children(os.environ)
    asked_for = os.environ.get("LOOPCANARY_RUN_PID") == str(os.getpid())
    if _called or (is_tool(sys.orig_argv) and not asked_for):
        return
    _called = True
    is_early = any(os.environ.get(f"LOOPCANARY_{one}") in _TRUE for one in ("STARTUP", "SD_WATCHDOG"))
    if asked_for or is_early:
        loopcanary._begun_ns = begun_ns  # noqa: SLF001 - the same package
        _begin()
        return
    from loopcanary.probes import ImportWatch
    from loopcanary.registry import awaited

    loopcanary._when_used = begin_now  # noqa: SLF001 - the same package
    _waiting = ImportWatch(awaited(), begin_now)
    _waiting.start()


def begin_now() -> None:
    """Called when the program imports a loop's library. Does nothing unless `start` waits for that."""
    global _waiting
    waiting, _waiting = _waiting, None
    if waiting is not None:
        waiting.cancel()
        _begin()


def _begin() -> None:
    try:
        loopcanary.install(_from_startup=True)
    except Exception as error:  # the program must start whatever happens here
        whose = sys.modules.get("loopcanary.whose_exception")  # not loaded: nothing of ours was
        if whose is not None and whose.is_of_handler(error):
            raise
        asked_for = os.environ.get("LOOPCANARY_RUN_PID") == str(os.getpid())
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
            return _is_tool_script(argument)
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


def _is_tool_script(path: str) -> bool:
    name = path.replace("\\", "/").rpartition("/")[2]
    name = name.removesuffix(".py").removesuffix(".exe")
    is_pip = name == "pip" or (name.startswith("pip") and name[3:].replace(".", "").isdigit())
    return is_pip or name in _TOOL_SCRIPTS


def _say(line: str) -> None:
    try:
        sys.stderr.write(line + "\n")
    except (AttributeError, OSError, ValueError):  # stderr not there, full or closed
        return
