"""What was set aside: databases that were damaged, kept beside the one that was begun in their place."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

from loopcanary.late_dataclass import dataclass
from loopcanary.store.sqlite.files import FILE_NAME

_NAME = re.compile(re.escape(FILE_NAME) + r"\.damaged-(\d{8}T\d{6}Z)(-\d+)?")
_S = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Aside:
    """A damaged database that was set aside."""

    name: str
    bytes: int
    wall_ns: int
    """When it was set aside, to a second."""


def set_aside_in(folder: Path) -> list[Aside]:
    """Damaged databases in a store's folder, newest first; none where it cannot be read.

    The first process that meets the damage sets the file aside; this finds it.
    """
    found: list[Aside] = []
    try:
        for path in folder.iterdir():
            aside = _aside(path)
            if aside is not None:
                found.append(aside)
    except OSError:
        return []
    return sorted(found, key=lambda one: (one.wall_ns, one.name), reverse=True)


def _aside(path: Path) -> Aside | None:
    match = _NAME.fullmatch(path.name)
    if match is None:
        return None
    try:
        moment = datetime.strptime(match[1], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        return Aside(name=path.name, bytes=path.stat().st_size, wall_ns=int(moment.timestamp()) * _S)
    except (ValueError, OSError):  # no moment; gone meanwhile
        return None
