"""Where the store is."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from loopcanary.facts import is_anothers, is_ours
from loopcanary.late_dataclass import dataclass
from loopcanary.model.config import STORE_NAME
from loopcanary.store.errors import StoreError
from loopcanary.whose_folder import fits


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
        The folder given, else `.loopcanary` in the current folder, else, where that cannot be written, is
        another user's, or root would write in another user's folder, the user's state folder. Where neither
        can be written, nothing will be stored: the notice says so.
    """
    usual = _named(given, cwd)
    is_fit, is_theirs = fits(str(usual)), given is None and is_anothers(str(usual))
    if is_fit and (given is not None or (_writable(usual) and not is_theirs)):
        return Location(folder=usual)
    here = usual.parent
    try:
        folder = user_folder(environ)
    except StoreError as error:
        return Location(folder=usual, notice=f"{error}; stalls are not stored", is_usable=False)
    why = f"{usual} belongs to another user" if is_theirs else f"{here} cannot be written"
    if not is_fit:
        why = f"other users can change {usual}"
    if fits(str(folder)) and _writable(folder):
        return Location(folder=folder, notice=f"{why}: stalls are stored in {folder}")
    neither = f"neither {here} nor {folder} can be written: stalls are not stored; choose another --store"
    return Location(folder=folder, notice=neither, is_usable=False)


def find(
    given: Path | str | None = None, *, cwd: Path | None = None, environ: Mapping[str, str] = os.environ
) -> Location:
    """Says where the store is that reports read: as `locate`, but one that exists goes first, and root reads
    those of other users, too."""
    usual = _named(given, cwd)
    is_there = os.path.isdir(usual) and _writable(usual)  # noqa: PTH112 - see _writable
    if given is not None or (is_there and not (is_ours(str(usual)) and is_anothers(str(usual)))):
        return Location(folder=usual)
    first = locate(cwd=cwd, environ=environ)
    if os.path.isdir(first.folder):  # noqa: PTH112
        return Location(folder=first.folder)
    try:
        second = user_folder(environ)
    except StoreError:
        return Location(folder=first.folder)
    return Location(folder=second if os.path.isdir(second) else first.folder)  # noqa: PTH112


def _named(given: Path | str | None, cwd: Path | None) -> Path:
    here = Path.cwd() if cwd is None else cwd
    return here / (STORE_NAME if given is None else Path(given).expanduser())


def user_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """`loopcanary` in the user's state folder: XDG_STATE_HOME, or ~/.local/state.

    StoreError where there is no home.
    """
    state = environ.get("XDG_STATE_HOME", "")
    # The base directory specification: a path that is not absolute is to be ignored.
    if state.startswith("/") and is_ours(state):
        return Path(state) / "loopcanary"
    try:
        home = Path.home()
        if not is_ours(str(home)):  # sudo may leave HOME as it was
            home = Path("~root").expanduser()
    except RuntimeError:  # a container's user without an entry in passwd
        raise StoreError(
            "the current folder cannot be written and you have no home folder: choose another --store"
        ) from None
    return home / ".local" / "state" / "loopcanary"


def _writable(folder: Path) -> bool:
    """True if files can be made in the folder, or the folder itself can be made."""
    # Not pathlib's, which raise where a folder above may not be entered.
    place = next((one for one in (folder, *folder.parents) if os.path.exists(one)), folder)  # noqa: PTH110
    return os.path.isdir(place) and os.access(place, os.W_OK | os.X_OK)  # noqa: PTH112
