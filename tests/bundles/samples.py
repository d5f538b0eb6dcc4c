"""Bundles for tests: made of given records, and zips that are made by hand."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.building.issues import JANK
from tests.building.stalls import KILLED, SESSION, STALL

from loopcanary.bundles.reading import read_bundle
from loopcanary.bundles.writing import Contents, write_bundle
from loopcanary.model import Issue, LagIssue, Session, Stall
from loopcanary.model.search import Remark

NOW = 1_800_000_000 * 10**9
REMARK = Remark(ignored=True, note="seen before")


@dataclass
class Taken:
    """Who takes what a bundle holds."""

    stalls: list[Stall] = field(default_factory=list)
    issues: list[LagIssue] = field(default_factory=list)
    sessions: list[Session] = field(default_factory=list)
    remarks: dict[str, Remark] = field(default_factory=dict)

    def add_issue(self, issue: Issue) -> None:
        if isinstance(issue, Stall):
            self.stalls.append(issue)
        else:
            self.issues.append(issue)

    def add_session(self, session: Session) -> None:
        self.sessions.append(session)

    def add_remark(self, fingerprint: str, remark: Remark) -> None:
        self.remarks[fingerprint] = remark


def bundled(
    stalls: Iterable[Stall] = (STALL, KILLED),
    issues: Iterable[LagIssue] = (JANK,),
    sessions: Iterable[Session] = (SESSION,),
    remarks: dict[str, Remark] | None = None,
    **options: Any,
) -> bytes:
    known = {session.id: session for session in sessions}
    out = io.BytesIO()
    said = {STALL.fingerprint: REMARK} if remarks is None else remarks
    contents = Contents(issues=iter([*stalls, *issues]), session=known.get, remarks=said)
    write_bundle(out, contents, made_by="a test", **options)
    return out.getvalue()


def taken(path: Path, data: bytes) -> Taken:
    path.write_bytes(data)
    found = Taken()
    read_bundle(path, found, now_wall_ns=NOW)
    return found


def members_of(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def rezipped(
    members: dict[str, bytes],
    change: Callable[[zipfile.ZipInfo], None] = lambda _: None,
    method: int = zipfile.ZIP_DEFLATED,
) -> bytes:
    """A zip of these members; `change` may spoil what it says of each."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in members.items():
            info = zipfile.ZipInfo(name)
            info.compress_type = method
            info.external_attr = 0o100600 << 16
            change(info)
            archive.writestr(info, data)
    return out.getvalue()


def retold(members: dict[str, bytes], /, **changes: Any) -> dict[str, bytes]:
    """The members with a manifest that fits them, but for these changes."""
    told = json.loads(members["manifest.json"])
    told["members"] = [
        {
            "name": name,
            "records": data.count(b"\n"),
            "bytes": len(data),
            "sha256": hashlib.sha256(data).hexdigest(),
        }
        for name, data in members.items()
        if name != "manifest.json"
    ]
    told.update(changes)
    return {**members, "manifest.json": json.dumps(told).encode() + b"\n"}
