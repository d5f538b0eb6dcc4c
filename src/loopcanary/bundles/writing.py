"""From records to a bundle: one pass, equal bytes for equal records.

No time of its making, fixed dates in the zip. (Deflate is the interpreter's own: another zlib may pack the
same records into other bytes.)
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from typing import IO, Any, Self

from loopcanary.bundles import layout
from loopcanary.bundles.layout import BundleError
from loopcanary.bundles.redaction import Redactor
from loopcanary.late_dataclass import dataclass
from loopcanary.model import Issue, Session, Stall, StallState
from loopcanary.model.search import Remark
from loopcanary.wire import SCHEMA_VERSION, time_to_text, to_wire
from loopcanary.words.sentences import coded

_DATE = (1980, 1, 1, 0, 0, 0)
"""The first date that a zip can hold."""
_MODE = 0o100600
_UNIX = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """The records for a bundle. Issues can be read once."""

    issues: Iterator[Issue]
    """Stalls first."""
    session: Callable[[str], Session | None]
    remarks: Mapping[str, Remark] = field(default_factory=dict)
    """Remarks by fingerprint; those of bugs in the bundle go along."""


@dataclass(slots=True, kw_only=True)
class Written:
    issues: list[tuple[str, StallState]] = field(default_factory=list)
    """The id and state of each issue, stalls first."""
    stalls: int = 0
    """How many of the issues are stalls."""
    sessions: int = 0
    remarks: int = 0


def write_bundle(
    out: IO[bytes],
    contents: Contents,
    *,
    made_by: str,
    redactor: Redactor | None = None,
) -> Written:
    """Writes a bundle to a seekable file. BundleError: it is too large. OSError."""
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, allowZip64=False) as archive:
        writer = _Writer(archive, redactor or Redactor((), b""))
        try:
            writer.issues(contents.issues)
            writer.sessions(contents.session)
            writer.remarks(contents.remarks)
            writer.manifest(made_by)
        except (zipfile.LargeZipFile, RuntimeError) as error:
            raise _too_large() from error
    return writer.written


def _too_large() -> BundleError:
    return BundleError(
        "this is more than a bundle can hold: choose fewer stalls, such as by --since and --until"
    )


class _Writer:
    """Writes member after member, and keeps the facts of the manifest."""

    def __init__(self, archive: zipfile.ZipFile, redactor: Redactor) -> None:
        self.written = Written()
        self._archive = archive
        self._redactor = redactor
        self._left = layout.TOTAL_MAX
        self._members: list[dict[str, Any]] = []
        # Dicts, because sets have no order.
        self._sessions: dict[str, None] = {}
        self._fingerprints: dict[str, None] = {}
        self._first: int | None = None
        self._last: int | None = None

    def issues(self, issues: Iterator[Issue]) -> None:
        ahead: Issue | None = None
        for kind in (layout.STALLS, layout.ISSUES):
            with self._pile(kind) as pile:
                while ahead is not None or (ahead := next(issues, None)) is not None:
                    if isinstance(ahead, Stall) != (kind == layout.STALLS):
                        break
                    self._left -= pile.add(self._noted(ahead))
                    if self._left < 0:
                        raise _too_large()
                    self.written.stalls += isinstance(ahead, Stall)
                    ahead = None

    def _noted(self, issue: Issue) -> dict[str, Any]:
        self._sessions[issue.session] = None
        self._fingerprints[issue.fingerprint] = None
        began = issue.began_wall_ns
        self._first = began if self._first is None else min(self._first, began)
        self._last = began if self._last is None else max(self._last, began)
        self.written.issues.append((issue.id, issue.state))
        return coded(to_wire(self._redactor.issue(issue)))

    def sessions(self, find: Callable[[str], Session | None]) -> None:
        """Writes the known sessions of the issues, without the store that they came from."""
        with self._pile(layout.SESSIONS) as pile:
            for session_id in self._sessions:
                session = find(session_id)
                if session is not None:
                    own = replace(session, imported_wall_ns=None, imported_from=None)
                    pile.add(to_wire(self._redactor.session(own)))
                    self.written.sessions += 1

    def remarks(self, remarks: Mapping[str, Remark]) -> None:
        with self._pile(layout.REMARKS) as pile:
            for known in sorted(self._fingerprints.keys() & remarks.keys()):
                fingerprint, remark = self._redactor.remark(known, remarks[known])
                if remark != Remark():
                    pile.add({"fingerprint": fingerprint, "ignored": remark.ignored, "note": remark.note})
                    self.written.remarks += 1

    def manifest(self, made_by: str) -> None:
        told = {
            "format": layout.FORMAT,
            "version": layout.VERSION,
            "schema": SCHEMA_VERSION,
            "made_by": made_by,
            "redacted": list(self._redactor.classes),
            "stalls": self.written.stalls,
            "issues": len(self.written.issues) - self.written.stalls,
            "sessions": self.written.sessions,
            "remarks": self.written.remarks,
            "first_at": None if self._first is None else time_to_text(self._first),
            "last_at": None if self._last is None else time_to_text(self._last),
            "members": self._members,
        }
        members = self._archive.infolist()
        unpacked = sum(member.file_size for member in members)
        if unpacked > layout.TOTAL_MAX or layout.is_too_dense(
            unpacked, sum(member.compress_size for member in members)
        ):
            raise _too_large()
        self._archive.writestr(_info(layout.MANIFEST), json.dumps(told, indent=1) + "\n")

    def _pile(self, kind: str) -> _Pile:
        return _Pile(self._archive, kind, self._members)


class _Pile:
    """Records of one kind, in as many members as they take. Context manager."""

    def __init__(self, archive: zipfile.ZipFile, kind: str, told: list[dict[str, Any]]) -> None:
        self._archive = archive
        self._kind = kind
        self._told = told
        self._number = 0
        self._member: _Member | None = None

    def add(self, record: dict[str, Any]) -> int:
        """Writes a record; returns its bytes. BundleError: no reader would take it."""
        if self._member is not None and self._member.bytes >= layout.MEMBER_MAX:
            self._close()
        if self._member is None:
            if len(self._told) >= layout.MEMBERS_MAX - 1:
                raise _too_large()
            self._number += 1
            self._member = _Member(self._archive, layout.member_name(self._kind, self._number))
        return self._member.add(record)

    def _close(self) -> None:
        if self._member is not None:
            self._told.append(self._member.close())
            self._member = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None or self._member is None:
            self._close()
        else:
            self._member.abandon()


class _Member:
    """A member while it is written: a JSON object a line, in ASCII."""

    def __init__(self, archive: zipfile.ZipFile, name: str) -> None:
        self.bytes = 0
        self._records = 0
        self._name = name
        self._digest = hashlib.sha256()
        self._file = archive.open(_info(name), "w")

    def add(self, record: dict[str, Any]) -> int:
        """Writes a record; returns its bytes. BundleError: no reader would take it."""
        try:
            text = json.dumps(record, separators=(",", ":"), allow_nan=False)
        except ValueError as error:
            raise BundleError(f"a record holds what JSON cannot: {error}") from error
        line = text.encode("ascii") + b"\n"
        if len(line) > layout.LINE_MAX:
            raise _too_large()
        self._file.write(line)
        self._digest.update(line)
        self.bytes += len(line)
        self._records += 1
        return len(line)

    def close(self) -> dict[str, Any]:
        """Ends the member; returns its entry in the manifest."""
        self._file.close()
        return {
            "name": self._name,
            "records": self._records,
            "bytes": self.bytes,
            "sha256": self._digest.hexdigest(),
        }

    def abandon(self) -> None:
        """Closes the member unfinished, as the archive is given up."""
        self._file.close()


def _info(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, _DATE)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = _MODE << 16
    info.create_system = _UNIX
    return info
