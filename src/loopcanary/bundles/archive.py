"""An untrusted zip file, opened only if it is a plain one, within limits.

Nothing is unpacked to the disk, so a name in it cannot point anywhere; names that try are refused all the
same, since no bundle has them.
"""

from __future__ import annotations

import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

from loopcanary.bundles import layout
from loopcanary.bundles.layout import BundleError

# 4.3.16 of PKWARE's APPNOTE.TXT: the end of central directory record, here without a comment, and the
# locator (4.3.15) before it where there is a 64-bit one.
_END = struct.Struct("<4s4H2LH")
_END_SIGNATURE = b"PK\x05\x06"
_LOCATOR_SIGNATURE, _LOCATOR_BYTES = b"PK\x06\x07", 20
_ENCRYPTED = 0x1 | 0x40 | 0x2000
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)

# The errors of zipfile and zlib for bytes that are not a zip, or a broken one.
BROKEN = (
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    zlib.error,
    struct.error,
    EOFError,
    OSError,
    ValueError,
    RuntimeError,
    OverflowError,
    LookupError,
)


@contextmanager
def opened(path: Path) -> Iterator[zipfile.ZipFile]:
    """Opens the archive. BundleError: a member is not of a bundle's names, kinds and sizes."""
    with ExitStack() as stack:
        try:
            if not stat.S_ISREG(path.stat().st_mode):
                raise BundleError("it is not a file")
            file = stack.enter_context(path.open("rb"))
            _check_end(file)
            archive = stack.enter_context(zipfile.ZipFile(file))
            _check_members(archive.infolist())
        except BROKEN as error:
            raise BundleError(_words(error)) from error
        yield archive


def _words(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return f"the zip is broken: {str(error) or type(error).__name__}"


def _check_end(file: IO[bytes]) -> None:
    """Checks that the directory is small and ends the file: `zipfile` would read a gigabyte."""
    size = file.seek(0, 2)
    if size > layout.FILE_MAX:
        raise BundleError(f"it is larger than a bundle can be ({layout.FILE_MAX:,} bytes)")
    if size < _END.size:
        raise BundleError("it is not a zip")
    file.seek(max(0, size - _END.size - _LOCATOR_BYTES))
    tail = file.read(_END.size + _LOCATOR_BYTES)
    signature, disk, first_disk, here, entries, length, offset, comment = _END.unpack(tail[-_END.size :])
    if signature != _END_SIGNATURE or comment:
        raise BundleError("it is not a zip, is cut short, or has data after its end")
    if tail.startswith(_LOCATOR_SIGNATURE) and len(tail) > _END.size:
        raise BundleError("it is a zip with 64-bit sizes, which no bundle is")
    if disk or first_disk or here != entries or offset + length != size - _END.size:
        raise BundleError("its zip directory is not at the end, where bundles have it")
    if entries > layout.MEMBERS_MAX or length > layout.DIRECTORY_MAX:
        raise BundleError(f"it has more than {layout.MEMBERS_MAX:,} members")


def _check_members(members: list[zipfile.ZipInfo]) -> None:
    seen: set[str] = set()
    for member in members:
        name = member.orig_filename
        if name != member.filename or not (name == layout.MANIFEST or layout.MEMBER.fullmatch(name)):
            shown = ascii(name if len(name) <= 80 else f"{name[:80]}...")
            raise BundleError(f"{shown} is not a member that bundles have")
        if name in seen:
            raise BundleError(f"{name} is in it twice")
        seen.add(name)
        _check_member(name, member)
    unpacked = sum(member.file_size for member in members)
    if unpacked > layout.TOTAL_MAX:
        raise BundleError(f"it would unpack to more than {layout.TOTAL_MAX:,} bytes")
    if layout.is_too_dense(unpacked, sum(member.compress_size for member in members)):
        raise BundleError(f"it would unpack to more than {layout.RATIO_MAX} times its size")
    if layout.MANIFEST not in seen:
        raise BundleError(f"it has no {layout.MANIFEST}: it is a zip, but not a bundle of loopcanary")


def _check_member(name: str, member: zipfile.ZipInfo) -> None:
    if stat.S_IFMT(member.external_attr >> 16) not in (0, stat.S_IFREG) or member.is_dir():
        raise BundleError(f"{name} is not a plain file")
    if member.flag_bits & _ENCRYPTED:
        raise BundleError(f"{name} is encrypted")
    if member.compress_type not in _METHODS:
        raise BundleError(f"{name} is compressed in a way that no bundle is")
    if member.file_size > _most(name):
        raise BundleError(f"{name} is larger than a member can be ({_most(name):,} bytes)")


def _most(name: str) -> int:
    return layout.MANIFEST_MAX if name == layout.MANIFEST else layout.MEMBER_LIMIT


def lines(archive: zipfile.ZipFile, name: str) -> Iterator[bytes]:
    """The lines of a member, each with its end. BundleError: a line is cut short.

    The last line proves the member's checksum, so a reader that gets there knows that it is whole.
    """
    try:
        with archive.open(name) as member:
            while line := member.readline(layout.LINE_MAX + 1):
                if not line.endswith(b"\n"):
                    raise BundleError(f"{name} has a line that is too long, or is cut short")
                yield line
    except BROKEN as error:
        raise BundleError(f"{name}: {_words(error)}") from error
