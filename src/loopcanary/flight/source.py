"""Where the bytes of a flight file come from: this process's mapping, or a file.

A file is read with pread, never mapped: its writer, or any process with access, can cut it short
at any time, and a load from a mapped page that is gone is a SIGBUS in the reader. Every read here
gives a private copy, so that what has been checked stays as it was checked.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

from loopcanary.facts import moved_up
from loopcanary.unpatched import unpatched

MAX_FILE_BYTES: Final = 64 << 20
"""Files beyond this are refused. A writer of this version makes 8 MiB."""

_OPEN_FLAGS: Final = (
    os.O_RDONLY
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)  # a FIFO or a device must not hold us up before fstat finds it out
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_BINARY", 0)
)


class ByteSource(Protocol):
    """Bytes at offsets, as a copy. Thread-safe."""

    name: str
    size: int
    identity: tuple[int, int] | None
    """Device and inode, of a file."""

    def read(self, offset: int, size: int) -> bytes:
        """Exactly `size` bytes; FlightError where they are not all there."""

    def close(self) -> None:
        """Gives back what it holds; idempotent."""


class BufferSource:
    """Bytes of this process's own mapping, or of a copy."""

    def __init__(self, buffer: bytes | bytearray | memoryview, name: str) -> None:
        self.name = name
        self.identity: tuple[int, int] | None = None
        try:
            self._view = memoryview(buffer).toreadonly().cast("B")
        except TypeError as error:
            raise FlightError(
                name, f"is not a plain run of bytes ({error}); give a contiguous buffer"
            ) from None
        self.size = len(self._view)

    def read(self, offset: int, size: int) -> bytes:
        """Exactly `size` bytes; FlightError where they are not all there."""
        try:
            if 0 <= offset <= self.size - size:
                return self._view[offset : offset + size].tobytes()
        except ValueError:  # released
            raise FlightError(self.name, "is closed; open it again") from None
        raise FlightError(
            self.name, f"has {self.size} bytes, but bytes {offset} to {offset + size} are needed"
        )

    def close(self) -> None:
        """Lets the buffer go, so that its owner can unmap it; idempotent."""
        self._view.release()


class FileSource:
    """Bytes of a file, read when they are asked for: the file may belong to a running process."""

    def __init__(self, path: str | os.PathLike[str], fd: int | None = None) -> None:
        """`fd`: it is open already, and closed here. FlightError."""
        self.name = os.fspath(path)
        self._lock = unpatched("_thread", "allocate_lock")()
        self._pid = os.getpid()
        self._fd = _open_checked(self.name) if fd is None else fd
        facts = os.fstat(self._fd)
        self.identity: tuple[int, int] | None = facts.st_dev, facts.st_ino
        self.size = facts.st_size

    def read(self, offset: int, size: int) -> bytes:
        """Exactly `size` bytes; FlightError where they are not all there."""
        if not 0 <= offset <= self.size - size:
            raise FlightError(
                self.name, f"has {self.size} bytes, but bytes {offset} to {offset + size} are needed"
            )
        # The lock keeps close() from giving the descriptor's number to another file meanwhile.
        with self._lock:
            if self._fd < 0:
                raise FlightError(self.name, "is closed; open it again")
            if not self._is_ours():
                self._open_again()
            try:
                data = os.pread(self._fd, size, offset)
            except OSError as error:
                raise FlightError(self.name, f"cannot be read at byte {offset}: {error.strerror}") from error
        if len(data) != size:
            raise FlightError(
                self.name, f"was cut short while it was read, at byte {offset + len(data)}; try again"
            )
        return data

    def measure(self) -> None:
        """Finds the `size` of a file that grows."""
        with self._lock, suppress(OSError):
            if self._is_ours():
                self.size = os.fstat(self._fd).st_size

    def close(self) -> None:
        """Closes the descriptor; idempotent."""
        if os.getpid() != self._pid:
            # Forked in the middle of a read: the thread that held the lock is not here to give it back.
            self._pid, self._lock = os.getpid(), unpatched("_thread", "allocate_lock")()
        with self._lock:
            if self._fd >= 0 and self._is_ours():
                os.close(self._fd)
            self._fd = -1

    def _open_again(self) -> None:
        self._fd = _open_checked(self.name)
        if not self._is_ours():
            os.close(self._fd)
            self._fd = -1
            raise FlightError(self.name, "is another file now; open it again")

    def _is_ours(self) -> bool:
        """A program may close descriptors that it did not open, and get the number for a file of its own."""
        try:
            facts = os.fstat(self._fd)
        except OSError:
            return False
        return (facts.st_dev, facts.st_ino) == self.identity


def open_source(path: str | os.PathLike[str]) -> ByteSource:
    """The bytes of the file at `path`; FlightError where it is not a file that we trust to be one."""
    source = FileSource(path)
    if hasattr(os, "pread"):
        return source
    # Windows: no flight file is written there, so this copy does not change under our hands.
    source.close()
    return BufferSource(Path(path).read_bytes(), source.name)


def _open_checked(name: str) -> int:
    try:
        fd = os.open(name, _OPEN_FLAGS)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise FlightError(name, _why_not_opened(error)) from error
    problem = _why_not_trusted(os.fstat(fd))
    if problem is not None:
        os.close(fd)
        raise FlightError(name, problem)
    return moved_up(fd)


def _why_not_opened(error: OSError | ValueError) -> str:
    if not isinstance(error, OSError):
        return f"cannot be opened: {error}"
    if error.errno == errno.ELOOP:
        return "is a symbolic link; name the flight file itself"
    return f"cannot be opened: {error.strerror}"


def _why_not_trusted(facts: os.stat_result) -> str | None:
    if not stat.S_ISREG(facts.st_mode):
        return "is not a regular file; a flight file is one"
    if hasattr(os, "geteuid"):
        user = os.geteuid()
        if user != 0 and facts.st_uid not in (0, user):
            return (
                f"belongs to user {facts.st_uid}, not to you (user {user}); read it as that user or as root"
            )
    if facts.st_size > MAX_FILE_BYTES:
        return (
            f"has {facts.st_size} bytes, more than a flight file can have ({MAX_FILE_BYTES}); it is not one"
        )
    return None


def printable(text: str) -> str:
    """The text with everything that a terminal would act on written as an escape."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


class FlightError(Exception):
    """A flight file that cannot be read: one line with the place, what is wrong, and the next step.

    `path` is the file, or the name given for a buffer; `what` the rest of the line.
    """

    def __init__(self, path: str | os.PathLike[str], what: str) -> None:
        super().__init__(path, what)
        self.path = os.fspath(path)
        self.what = what

    def __str__(self) -> str:
        return f"{printable(self.path)}: {printable(self.what)}"
