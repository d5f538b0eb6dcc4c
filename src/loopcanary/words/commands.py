"""Command lines to be copied into a shell."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from loopcanary.model.config import STORE_NAME
from loopcanary.words.text import printable


def reading(command: str, stores: Iterable[Path], folder: Path | None = None) -> str:
    """`loopcanary COMMAND` on these stores. The default one of the folder is not named; None: the current
    one."""
    named = [store.expanduser() for store in stores]
    if not named or named == [(folder or _current_folder()) / STORE_NAME]:
        return f"loopcanary {command}"
    from shlex import quote  # most programs need it not

    return printable(" ".join(["loopcanary", command, *(f"--store {quote(str(one))}" for one in named)]))


def _current_folder() -> Path:
    try:
        return Path.cwd()
    except OSError:  # it is gone
        return Path()
