"""Has `loopcanary notify` started beside the watched program, where its settings ask for notifications.

A process of its own (docs/decisions/0007-notifications.md): it sees the hang that keeps Python from running
and the kill that nobody survives, and no receiver, desktop or library of theirs can hold up the program.
Drain thread.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from loopcanary.assembly import native_module
from loopcanary.engine.canary import Canary
from loopcanary.keeper import environment, no_interpreter
from loopcanary.model import Session
from loopcanary.notifications import desktop_session, standing
from loopcanary.notifications.words import NO_ADDRESS, VARIABLE
from loopcanary.unpatched import unpatched

_SHELL = "/bin/sh"
_APART = '"$@" &'
"""The shell ends at once, and what it started is not the program's child: a program that waits for all its
children does not wait for it."""


def start_follower(canary: Canary, session: Session, store: Path) -> None:
    """Starts one for the store, unless one is at work. OSError, RuntimeError where it cannot be done."""
    ways = [way for way in canary.config.notify if way != "bell"]
    if "desktop" in ways and (problem := desktop_session.obstacle()):
        canary.boundary.tell(problem)
        ways.remove("desktop")
    if "webhook" in ways and not os.environ.get(VARIABLE) and canary.config.webhook_file is None:
        canary.boundary.tell(f"webhook: {NO_ADDRESS}")
        ways.remove("webhook")
    if all(standing.is_taken(store, way) for way in ways):
        return
    problem = no_interpreter()
    if problem is not None:
        raise RuntimeError(f"{problem}; run `loopcanary notify` beside the program")
    store.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not standing.may_start(store):
        return  # another process of the program has just started one
    words = [sys.executable, "-P", "-m", "loopcanary", "notify", "--store", str(store)]
    words += ["--beside", str(os.getpid()), "--since", str(session.started_wall_ns)]
    words += [f"--{way}" for way in ways]
    _spawn(words, environment(), store)


def _spawn(words: list[str], environment: dict[str, str], store: Path) -> None:
    """By the extension: the program does not notice."""
    log = str(store / standing.FOLDER / standing.LOG)
    try:
        native = native_module()
    except ImportError:
        _spawn_by_shell(words, environment, log)
        return
    variables = (f"{name}={value}" for name, value in environment.items())
    native.spawn_apart(tuple(map(os.fsencode, words)), tuple(map(os.fsencode, variables)), os.fsencode(log))


def _spawn_by_shell(words: list[str], environment: dict[str, str], log: str) -> None:
    """Where there is no extension the shell is a child of the program's, for about a millisecond."""
    actions: list[tuple[Any, ...]] = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        (os.POSIX_SPAWN_OPEN, 2, log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
    ]
    # gevent's would make a child of its loop's.
    spawn, wait = unpatched("os", "posix_spawn"), unpatched("os", "waitpid")
    child = spawn(_SHELL, [_SHELL, "-c", _APART, "sh", *words], environment, file_actions=actions)
    try:
        wait(child, 0)
    except ChildProcessError:
        return  # the program waits for whatever ends, or its children end unasked (SIGCHLD is ignored)
