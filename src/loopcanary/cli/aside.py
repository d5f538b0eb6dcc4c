"""For commands that a program has started: nothing of the program's is kept, and a keeper needs no click,
which its Python need not have."""

from __future__ import annotations

import os
from contextlib import suppress

_DESCRIPTORS_MAX = 65_536
_NICE = 10
_BAD_USE = 2
_OUT, _ERR = 1, 2


def go_aside() -> None:
    """Leaves its folder, its terminal and its open files."""
    with suppress(OSError):
        os.chdir("/")
    if hasattr(os, "setsid"):
        with suppress(OSError):
            os.setsid()
    with suppress(OSError, ValueError):
        os.closerange(3, min(os.sysconf("SC_OPEN_MAX"), _DESCRIPTORS_MAX))


def keep_apart(folder: str) -> int:
    """`loopcanary keep --apart STORE`: keeps one store until some seconds after its last watched program.

    Args:
        folder: Of the store; it is made where it is missing.

    Returns:
        The exit status: 0; 2 where this cannot be, after one line on stderr, which is the keeper's log.
    """
    from loopcanary.assembly.keeper.making import make_keeper
    from loopcanary.assembly.store import open_store
    from loopcanary.config import ConfigError, load
    from loopcanary.store import StoreError, find, may_be_store

    try:
        config = load(store=folder)
        place = find(config.store).folder
        if os.path.lexists(place) and not may_be_store(place):
            _complain(f"{place} is no store")
            return _BAD_USE
        store = open_store(place, config)
        go_aside()
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, max(_NICE, os.getpriority(os.PRIO_PROCESS, 0)))
        try:
            keeper = make_keeper([store], is_apart=True, show=_show, complain=_complain)
            try:
                keeper.run()
            finally:
                keeper.end()
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
    """A log on a full disk takes nothing."""
    with suppress(OSError):
        os.write(descriptor, f"{line}\n".encode("utf-8", "backslashreplace"))
