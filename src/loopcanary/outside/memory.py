"""Memory of another process: what is mapped where, and its contents."""

from __future__ import annotations

import os
import struct
from itertools import groupby
from pathlib import Path
from typing import Self

from loopcanary.late_dataclass import dataclass
from loopcanary.outside.processes import OutsideError, Process

_MAPS_BYTES = 32 << 20
_READ_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Mapping:
    """A line of /proc/PID/maps."""

    start: int
    end: int
    executable: bool
    offset: int
    device: str
    inode: int
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MappedFile:
    """A file of which parts are mapped, from where its first byte is."""

    path: str
    base: int
    end: int
    device: str
    inode: int
    executable: bool

    @property
    def name(self) -> str:
        """The last part of its path."""
        return self.path.removesuffix(" (deleted)").rpartition("/")[2]


class Memory:
    """Reads the memory of a process; a context manager. What it holds stays that process's if the number is
    given to another one."""

    def __init__(self, process: Process) -> None:
        """NotReadableError: the kernel refuses. OutsideError: the process is gone."""
        self._process = process
        try:
            self._descriptor = os.open(process.folder / "mem", os.O_RDONLY | os.O_CLOEXEC)
        except PermissionError:
            raise process.refuse() from None
        except OSError:
            process.check()
            raise OutsideError(f"the memory of process {process.pid} cannot be opened") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)

    def read(self, address: int, size: int) -> bytes | None:
        """So many bytes from the address; None: not all of them can be read."""
        if not (0 <= address < 1 << 63) or not 0 <= size <= _READ_BYTES:
            return None
        try:
            data = os.pread(self._descriptor, size, address)
        except OSError:
            return None
        return data if len(data) == size else None

    def words(self, layout: struct.Struct, address: int) -> tuple[int, ...] | None:
        """Numbers from the address; None: they cannot be read."""
        data = self.read(address, layout.size)
        return None if data is None else layout.unpack(data)


def mappings(process: Process) -> list[Mapping]:
    """The process's mappings. NotReadableError; OutsideError: the process is gone."""
    try:
        with (process.folder / "maps").open("rb") as file:
            text = file.read(_MAPS_BYTES)
    except PermissionError:
        raise process.refuse() from None
    except OSError:
        process.check()
        raise OutsideError(f"the memory map of process {process.pid} cannot be read") from None
    found = [_mapping(line) for line in text.split(b"\n")]
    return [one for one in found if one is not None]


def _mapping(line: bytes) -> Mapping | None:
    fields = line.split(None, 5)
    try:
        start, _, end = fields[0].partition(b"-")
        return Mapping(
            start=int(start, 16),
            end=int(end, 16),
            executable=b"x" in fields[1],
            offset=int(fields[2], 16),
            device=fields[3].decode("ascii", "replace"),
            inode=int(fields[4]),
            path=os.fsdecode(fields[5]) if len(fields) > 5 else "",
        )
    except (IndexError, ValueError):
        return None


def mapped_files(maps: list[Mapping]) -> list[MappedFile]:
    """Files with their mappings from the first byte on, in the order of addresses. Between two mappings of a
    file there may be anonymous memory (.bss), but no other file."""
    named = [one for one in maps if one.inode and one.path.startswith("/")]
    files = []
    for (path, device, inode), group in groupby(named, key=lambda one: (one.path, one.device, one.inode)):
        parts = list(group)
        first = next((part for part in parts if part.offset == 0), None)
        if first is not None:
            files.append(
                MappedFile(
                    path=path,
                    base=first.start,
                    end=max(part.end for part in parts),
                    device=device,
                    inode=inode,
                    executable=any(part.executable for part in parts),
                )
            )
    return files


def openable(process: Process, file: MappedFile) -> str | None:
    """A path by which the mapped file can be opened from here; None: there is none. The process may have
    another root folder or other mounts, where a file of that name need not be the mapped one."""
    for root in (f"{process.folder}/root", ""):
        try:
            facts = Path(f"{root}{file.path}").stat()
        except OSError:
            continue
        # What is mapped of a file on btrfs or overlayfs has another device than the file.
        if facts.st_ino == file.inode and (
            root or f"{os.major(facts.st_dev):02x}:{os.minor(facts.st_dev):02x}" == file.device
        ):
            return f"{root}{file.path}"
    return None
