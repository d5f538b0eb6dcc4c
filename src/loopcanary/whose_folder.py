"""How root opens what lies in folders of other users. `facts.is_ours` says which folders these are.

The other user can replace a folder by a link a moment after root has looked at it. So root opens such a
folder once, without following a link, and reaches what lies below by the descriptor (/proc/self/fd/N). A
command that writes becomes the folder's owner instead.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from contextlib import suppress

from loopcanary.facts import LINKS_MAX, is_ours, link_target, moved_up, steps

REACHED = "/proc/self/fd/"
"""How a path begins that leads below an open folder."""
NOWHERE = f"{REACHED}none"
_HOLD = getattr(os, "O_PATH", 0) | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_READ = os.O_RDONLY | _NO_LINK
for _name in ("O_NONBLOCK", "O_CLOEXEC", "O_BINARY"):
    _READ |= getattr(os, _name, 0)
_held: dict[str, tuple[int, tuple[int, int]]] = {}
"""By path: the descriptor, and which folder it is. A program may close descriptors that it did not open."""

_lenders: set[int] = set()
"""The users whose folders this process, which is root's, reads."""


def reach(folder: str, *, make: bool = False, theirs: bool = False) -> str:
    """The path by which to open what lies below the folder: the folder's own where `is_ours`.

    Else the folder must be root's own, with mode 0700, or with `theirs`, which is for readers, any user's.
    Where it is not, or a link is on the way, the path leads nowhere. `make`: make it where it is missing.
    """
    if is_ours(folder):
        return folder
    descriptor = _descriptor(folder, make=make)
    facts = None if descriptor is None else os.fstat(descriptor)
    if facts is None or not (theirs or (facts.st_uid == 0 and not facts.st_mode & 0o077)):
        return NOWHERE
    if facts.st_uid != 0:
        _lenders.add(facts.st_uid)
    return f"{REACHED}{descriptor}"


def below(folder: str, name: str, *, make: bool = False, theirs: bool = False) -> str:
    """As `reach`, for a folder in this one, which is not made."""
    return reach(f"{reach(folder, make=make, theirs=theirs)}/{name}", theirs=theirs)


def place(path: str) -> str:
    """The path by which to open a file of root's own in any user's folder. The caller follows no link where
    the file is not `is_ours`."""
    folder, name = os.path.split(os.path.abspath(path))
    if is_ours(folder):
        return path
    descriptor = _descriptor(folder)
    return f"{NOWHERE if descriptor is None else f'{REACHED}{descriptor}'}/{name}"


def fits(folder: str) -> bool:
    """Whether a program may keep its store in this folder, as far as that shows before it is made."""
    return is_ours(folder) or reach(folder) != NOWHERE or not os.path.lexists(folder)


def owner(folder: str) -> int:
    """The number of the user whose folder it is, where this process is root's and the folder another user's;
    else 0."""
    descriptor = None if is_ours(folder) else _descriptor(folder)
    return 0 if descriptor is None else os.fstat(descriptor).st_uid


def may_show(facts: os.stat_result) -> bool:
    """Whether reports may quote this file. Data of another user may name any, which root could read."""
    return not _lenders or facts.st_uid in _lenders or bool(facts.st_mode & stat.S_IROTH)


def open_file(path: str, *, follow: bool = False) -> int:
    """A descriptor for reading a plain file. Raises OSError, also for a pipe or a device, and for a link
    unless `follow`."""
    descriptor = os.open(path, _READ & ~_NO_LINK if follow else _READ)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError(f"{path} is not a plain file")


def become_owner(folders: Iterable[str]) -> None:
    """Makes this process that of the user whose folders these are, or those in which they are to be made, for
    good: groups, group, user. Raises PermissionError with a line for people where it cannot."""
    names = [_nearest(name) for name in folders]
    users = {owner(name) for name in names}
    if users <= {0}:
        return
    if len(users) > 1:
        raise PermissionError("the stores belong to different users: name those of one user")
    [user] = users
    import pwd  # only where root writes for another user

    try:
        group = pwd.getpwuid(user).pw_gid
    except KeyError:
        group = os.stat(reach(names[0], theirs=True)).st_gid
    try:
        os.setgroups([])
        os.setresgid(group, group, group)
        os.seteuid(user)
        why = None if _is_readable() else "that user cannot read this Python"
        os.seteuid(0)
        if why is None:
            os.setresuid(user, user, user)
    except OSError as error:
        why = f"root cannot become that user ({error.strerror})"
    if why is not None:
        raise PermissionError(f"{names[0]} belongs to user {user}, and {why}: run the command as that user")


def _nearest(folder: str) -> str:
    """The folder, or the first one above it that is there."""
    while not os.path.lexists(folder):
        folder = os.path.dirname(os.path.abspath(folder))
    return folder


def _is_readable() -> bool:
    """Whether this process could load more of Python's modules."""
    return os.access(os.__file__, os.R_OK, effective_ids=True)


def _descriptor(folder: str, *, make: bool = False) -> int | None:
    """The folder, open until it is removed; None where it cannot be opened."""
    descriptor, was = _held.get(folder, (-1, (0, 0)))
    try:
        facts = os.fstat(descriptor)
        if (facts.st_dev, facts.st_ino) == was:
            if facts.st_nlink:
                return descriptor
            os.close(descriptor)
    except OSError:
        pass
    try:
        descriptor = _opened(os.path.abspath(folder), make=make)
    except OSError:
        return None
    descriptor = moved_up(descriptor)
    facts = os.fstat(descriptor)
    _held[folder] = descriptor, (facts.st_dev, facts.st_ino)
    return descriptor


def _opened(path: str, *, make: bool) -> int:
    """The folder, opened step by step. A link is followed, step by step too, only as long as root owns all
    that was met."""
    names, links = steps(path), 0
    here = os.open("/", _HOLD)
    try:
        is_theirs = os.fstat(here).st_uid != 0
        while names:
            name = names.pop()
            if make:
                with suppress(FileExistsError):
                    os.mkdir(name, 0o700, dir_fd=here)
            facts = os.lstat(name, dir_fd=here)
            is_theirs = is_theirs or facts.st_uid != 0
            target = None if is_theirs else link_target(name, facts, here)
            if target is not None:
                links += 1
                names += steps(target)
                name = "/" if target.startswith("/") else "."
            if links > LINKS_MAX or (is_theirs and name == ".."):
                raise OSError(f"{path} is not followed")  # noqa: TRY301 - as each of these calls does
            is_link_of_proc = target is None and not is_theirs and stat.S_ISLNK(facts.st_mode)
            outer, here = here, os.open(name, _HOLD | (0 if is_link_of_proc else _NO_LINK), dir_fd=here)
            os.close(outer)
            is_theirs = is_theirs or os.fstat(here).st_uid != 0
    except BaseException:
        os.close(here)
        raise
    return here
