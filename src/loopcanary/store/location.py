"""Where the store is."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from loopcanary.late_dataclass import dataclass
from loopcanary.model.config import STORE_NAME
from loopcanary.store.errors import StoreError


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """The folder of the store, absolute, and a sentence for people where it is not where they expect."""

    folder: Path
    notice: str | None = None
    is_usable: bool = True
    """Whether anything can be stored, as far as was looked."""


def locate(
    given: Path | str | None = None, *, cwd: Path | None = None, environ: Mapping[str, str] = os.environ
) -> Location:
    """Says where the store is, and makes nothing.

    Args:
        given: A folder that was asked for; `~` is the user's.
        cwd: The current folder, where it is not this process's.
        environ: Has HOME and XDG_STATE_HOME.

    Returns:
        The folder given, else `.loopcanary` in the current folder, else, where that cannot be written, the
        user's state folder. Where neither can be written, nothing will be stored: the notice says so.
    """
    here = Path.cwd() if cwd is None else cwd
    if given is not None:
        return Location(folder=here / Path(given).expanduser())
    usual = here / STORE_NAME
    if _writable(usual):
        return Location(folder=usual)
    try:
        folder = user_folder(environ)
    except StoreError as error:
        return Location(folder=usual, notice=f"{error}; stalls are not stored", is_usable=False)
    if _writable(folder):
        return Location(folder=folder, notice=f"{here} cannot be written: stalls are stored in {folder}")
    neither = f"neither {here} nor {folder} can be written: choose a --store; stalls are not stored"
    return Location(folder=folder, notice=neither, is_usable=False)


def find(
    given: Path | str | None = None, *, cwd: Path | None = None, environ: Mapping[str, str] = os.environ
) -> Location:
    """Says where the store is that reports read: as `locate`, but one that exists goes first."""
    first = locate(given, cwd=cwd, environ=environ)
    if given is not None or os.path.isdir(first.folder):  # noqa: PTH112 - see _writable
        return Location(folder=first.folder)
    try:
        second = user_folder(environ)
    except StoreError:
        return Location(folder=first.folder)
    return Location(folder=second if os.path.isdir(second) else first.folder)  # noqa: PTH112


def user_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """`loopcanary` in the user's state folder: XDG_STATE_HOME, or ~/.local/state.

    StoreError where there is no home.
    """
    state = environ.get("XDG_STATE_HOME", "")
    # The base directory specification: a path that is not absolute is to be ignored.
    if state.startswith("/"):
        return Path(state) / "loopcanary"
    try:
        home = Path.home()
    except RuntimeError:  # a container's user without an entry in passwd
        raise StoreError(
            "the current folder cannot be written and you have no home: choose a --store"
        ) from None
    return home / ".local" / "state" / "loopcanary"


def _writable(folder: Path) -> bool:
    """True if files can be made in the folder, or the folder itself can be made."""
    # Not pathlib's, which raise where a folder above may not be entered.
    place = next((one for one in (folder, *folder.parents) if os.path.exists(one)), folder)  # noqa: PTH110
    return os.path.isdir(place) and os.access(place, os.W_OK | os.X_OK)  # noqa: PTH112
