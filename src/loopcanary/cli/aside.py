"""For commands that a program has started: nothing of the program's is kept, and a keeper needs no click,
which its Python need not have."""

from __future__ import annotations

import os
from contextlib import suppress

_DESCRIPTORS_MAX = 65_536
_NICE = 10
_BAD_USE = 2
_OUT, _ERR = 1, 2


def log_to(path: str) -> None:
    """Makes the file, emptied, this process's stderr, if it can be opened. The program that starts such a
    process does not open the log, because it waits for no disk."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND
    for name in ("O_NOFOLLOW", "O_NOCTTY", "O_NONBLOCK"):
        flags |= getattr(os, name, 0)
    with suppress(OSError):
        descriptor = os.open(path, flags, 0o600)
        os.dup2(descriptor, _ERR, inheritable=False)
        os.close(descriptor)


def go_aside() -> None:
    """Leaves its folder, its terminal and its open files."""
    with suppress(OSError):
        os.chdir("/")
    if hasattr(os, "setsid"):
        with suppress(OSError):
            os.setsid()
    with suppress(OSError, ValueError):
        os.closerange(3, min(os.sysconf("SC_OPEN_MAX"), _DESCRIPTORS_MAX))


def _lower_priority() -> None:
    """Where that was not done at the start, behind a seccomp filter: by a child, for the filter may end who
    asks for it."""
    if os.getpriority(os.PRIO_PROCESS, 0) >= _NICE:
        return
    child = os.fork()
    if child == 0:
        import resource

        with suppress(OSError):
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            os.setpriority(os.PRIO_PROCESS, os.getppid(), _NICE)
        os._exit(0)
    os.waitpid(child, 0)


def keep_apart(folder: str) -> int:
    """`loopcanary keep --apart STORE`: keeps one store until some seconds after its last watched program.

    Args:
        folder: Of the store; it is made where it is missing.

    Returns:
        The exit status: 0; 2 where this cannot be, after one line on stderr, which is the keeper's log.
    """
    from loopcanary import keeper

    log_to(keeper.log_path(folder))
    from loopcanary.assembly.keeper.making import make_keeper
    from loopcanary.assembly.store import open_store
    from loopcanary.config import ConfigError, load
    from loopcanary.store import StoreError, find, may_be_store
    from loopcanary.whose_folder import owner

    try:
        config = load(store=folder)
        place = find(config.store).folder
        if os.path.lexists(place) and not may_be_store(place):
            _complain(f"{place} is not a store")
            return _BAD_USE
        store = open_store(place, config)
        if user := owner(str(place)):
            _complain(f"{place} belongs to user {user}: programs of root do not store there")
            return _BAD_USE
        go_aside()
        _lower_priority()
        try:
            made = make_keeper([store], is_apart=True, show=_show, complain=_complain)
            try:
                made.run()
            finally:
                made.end()
        finally:
            store.close()
    except (ConfigError, StoreError) as error:
        _complain(str(error))
        return _BAD_USE
    return 0


def _show(line: str) -> None:
    _write(_OUT, line)


def _complain(line: str) -> None:
    _write(_ERR, f"loopcanary: {' '.join(line.split())}")


def _write(descriptor: int, line: str) -> None:
    """Writes a line, which a full disk may refuse."""
    with suppress(OSError):
        os.write(descriptor, f"{line}\n".encode("utf-8", "backslashreplace"))
