"""From an untrusted file to records; a file with a record against the contract is refused."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Protocol

from loopcanary.bundles import layout
from loopcanary.bundles.archive import BROKEN, lines, opened
from loopcanary.bundles.layout import BundleError
from loopcanary.late_dataclass import dataclass
from loopcanary.model import Issue, Session, SessionEnd, Stall
from loopcanary.model.issues.facts import IssueFacts, UnknownIssue
from loopcanary.model.search import Remark
from loopcanary.protocols.kinds import issue_from_wire
from loopcanary.wire import SCHEMA_VERSION, UnknownKindError, from_wire
from loopcanary.words.sentences import spoken

_INTEGER_MAX = 1 << 63
_DIGITS_MAX = 20
_NUMBER_MAX = 1e13
"""The largest fractional numbers are milliseconds: 300 years of them."""
_NOTE_MAX = 100_000

# The errors of a wrong record: of JSON, of the model, of numbers out of range.
_WRONG = (ValueError, TypeError, LookupError, OverflowError, RecursionError)


class Taker(Protocol):
    """Takes the records. If reading raises, all of them are void."""

    def add_issue(self, issue: Issue) -> None: ...

    def add_session(self, session: Session) -> None: ...

    def add_remark(self, fingerprint: str, remark: Remark) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    name: str
    records: int
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    made_by: str
    redacted: tuple[str, ...]
    members: dict[str, Member]
    """By name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Head:
    """The part of a manifest that says whether the rest can be read."""

    format: str
    version: int = 0
    schema: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Told:
    """The rest of a manifest."""

    made_by: str
    redacted: tuple[str, ...]
    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _RemarkRecord:
    fingerprint: str
    note: str
    ignored: bool


def read_bundle(path: Path, taker: Taker, *, now_wall_ns: int) -> Manifest:
    """Gives every record of a bundle to the taker; marks sessions as imported now. BundleError: anything in
    it is malformed."""
    try:
        with opened(path) as archive:
            manifest = _manifest(archive)
            reader = _Reader(archive, manifest, taker)
            for kind in layout.KINDS:
                take = reader.take_of(kind, path.name, now_wall_ns)
                for name in sorted(name for name in manifest.members if name.startswith(f"{kind}-")):
                    reader.each(name, take)
    except BundleError as error:
        raise BundleError(f"{path} cannot be imported: {error}; nothing was changed") from error
    return manifest


def _manifest(archive: zipfile.ZipFile) -> Manifest:
    text = b"".join(lines(archive, layout.MANIFEST))
    try:
        value = _json(text)
        head = from_wire(_Head, value, "manifest")
        if head.format != layout.FORMAT:
            raise BundleError("it is a zip, but not a bundle of loopcanary")
        if (head.version, head.schema) != (layout.VERSION, SCHEMA_VERSION):
            raise BundleError(
                f"its format is {head.version} (schema {head.schema}), this loopcanary reads "
                f"{layout.VERSION} (schema {SCHEMA_VERSION}): import it with one that reads both"
            )
        told = from_wire(_Told, value, "manifest")
    except _WRONG as error:
        raise BundleError(f"{layout.MANIFEST}: {_words(error)}") from error
    members = {member.name: member for member in told.members}
    there = set(archive.namelist()) - {layout.MANIFEST}
    if there != members.keys() or len(told.members) != len(there):
        raise BundleError(f"its members are not those that {layout.MANIFEST} names")
    return Manifest(made_by=told.made_by, redacted=told.redacted, members=members)


class _Reader:
    def __init__(self, archive: zipfile.ZipFile, manifest: Manifest, taker: Taker) -> None:
        self._archive = archive
        self._manifest = manifest
        self._taker = taker
        self._last_signs: dict[str, int] = {}

    def take_of(self, kind: str, bundle: str, now_wall_ns: int) -> Callable[[Any], None]:
        return {
            layout.STALLS: lambda value: self._take_issue(from_wire(Stall, spoken(value))),
            layout.ISSUES: lambda value: self._take_issue(_issue(value)),
            layout.REMARKS: self._take_remark,
            layout.SESSIONS: lambda value: self._take_session(value, bundle, now_wall_ns),
        }[kind]

    def each(self, name: str, take: Callable[[Any], None]) -> None:
        member = self._manifest.members[name]
        records, size, digest = member.records, member.bytes, member.sha256
        seen, length, sha256 = 0, 0, hashlib.sha256()
        for line in lines(self._archive, name):
            seen, length = seen + 1, length + len(line)
            sha256.update(line)
            if seen > records or length > size:
                break
            try:
                take(_json(line))
            except _WRONG as error:
                raise BundleError(f"{name}, line {seen}: {_words(error)}") from error
        if (seen, length, sha256.hexdigest()) != (records, size, digest):
            raise BundleError(f"{name} does not hold what {layout.MANIFEST} says")

    def _take_session(self, value: Any, bundle: str, now_wall_ns: int) -> None:
        session = from_wire(Session, value)
        _check_ids(session.id)
        ended = session.ended_wall_ns
        if session.end is SessionEnd.RUNNING:
            watched = max((loop.window_ns for loop in session.loops), default=0)
            alive = session.started_wall_ns + max(watched, 0)
            ended = max(alive, ended or alive, self._last_signs.get(session.id, alive))
        imported = replace(session, ended_wall_ns=ended, imported_wall_ns=now_wall_ns, imported_from=bundle)
        self._taker.add_session(imported)

    def _take_issue(self, issue: Issue) -> None:
        _check_ids(issue.id, issue.session, issue.fingerprint, *issue.stalls)
        if issue.duration_ns < 0:
            raise ValueError("its duration is negative")
        over = issue.began_wall_ns + issue.duration_ns
        self._last_signs[issue.session] = max(over, self._last_signs.get(issue.session, 0))
        self._taker.add_issue(issue)

    def _take_remark(self, value: Any) -> None:
        record = from_wire(_RemarkRecord, value, "remark")
        _check_ids(record.fingerprint)
        if len(record.note) > _NOTE_MAX:
            raise ValueError("the note is too long")
        self._taker.add_remark(record.fingerprint, Remark(ignored=record.ignored, note=record.note))


def _issue(value: Any) -> Issue:
    """The issue; an UnknownIssue with the record as it came, if its kind cannot be read here."""
    try:
        return issue_from_wire(spoken(value))
    except UnknownKindError:
        if layout.KIND.fullmatch(value["kind"]) is None:
            raise
        common = from_wire(IssueFacts, value, "issue")
        facts = {field.name: getattr(common, field.name) for field in fields(common)}
        return UnknownIssue(**facts, record=value)


def _check_ids(*ids: str) -> None:
    for one in ids:
        if layout.ID.fullmatch(one) is None:
            raise ValueError(f"{one[:80]!a} is not an id")


def _json(line: bytes) -> Any:
    return json.loads(
        line.decode("utf-8"), parse_int=_integer, parse_float=_number, parse_constant=_no_number
    )


def _integer(text: str) -> int:
    number = int(text) if len(text) <= _DIGITS_MAX else _INTEGER_MAX + 1
    if not -_INTEGER_MAX <= number <= _INTEGER_MAX:
        raise ValueError(f"{text[:_DIGITS_MAX]}... is larger than any number in a bundle")
    return number


def _number(text: str) -> float:
    number = float(text)
    if not -_NUMBER_MAX <= number <= _NUMBER_MAX:
        raise ValueError(f"{text[:_DIGITS_MAX]}... is larger than any number in a bundle")
    return number


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is not a number")


def _words(error: BaseException) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return str(error)[:300] or type(error).__name__


_END_MAX = 65_557
"""The end of a zip with the longest comment, in bytes."""


class BundleImporter:
    words = "bundles of loopcanary"

    def recognises(self, path: Path) -> bool:
        """Whether the file is a zip that has a manifest, or cannot be read."""
        if not zipfile.is_zipfile(path):
            return False
        try:
            with path.open("rb") as file:
                size = file.seek(0, 2)
                directory = min(size, layout.DIRECTORY_MAX + _END_MAX)
                file.seek(size - directory)
                return layout.MANIFEST.encode() in file.read(directory)
        except BROKEN:
            return True

    def read(self, path: Path, taker: Taker, *, now_wall_ns: int) -> None:
        read_bundle(path, taker, now_wall_ns=now_wall_ns)


BUNDLE = BundleImporter()
