"""What other monitors wrote, taken into a store: texts through the importers, what they find as stalls."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2s
from typing import TYPE_CHECKING

from loopcanary.diagnosis.code.code_paths import CodePaths
from loopcanary.diagnosis.fingerprint import fingerprint
from loopcanary.importers.java import local_ns, wall_ns
from loopcanary.importers.ownership import JavaOwnership
from loopcanary.importers.sources import Text, streams
from loopcanary.importers.verdicts import stall_of
from loopcanary.model import Session, SessionEnd
from loopcanary.registry import IMPORTERS, REGISTRY

if TYPE_CHECKING:
    from loopcanary.protocols.imports import Blocked, Line, TextImporter
    from loopcanary.store import Intake

_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)[_-](\d\d)-(\d\d)-(\d\d)", re.ASCII)
_STAMP_LENGTH = 18
_TEXT_MAX = 200
_MEMORY_MAX = 1 << 50


@dataclass(slots=True)
class Unread:
    """Lines of a text that no importer knew."""

    name: str
    numbers: list[int]


@dataclass(slots=True)
class TextIntake:
    """Takes the texts of one import."""

    intake: Intake
    concern: Sequence[str]
    now_wall_ns: int
    texts: int = 0
    found: int = 0
    unread: list[Unread] = field(default_factory=list)
    empty: list[str] = field(default_factory=list)
    """Texts in which nothing was found."""
    _sessions: dict[str, Session] = field(default_factory=dict)
    _own: JavaOwnership = field(init=False)
    _importers: list[TextImporter] = field(init=False)

    def __post_init__(self) -> None:
        self._own = JavaOwnership(self.concern)
        self._importers = [one for _, one in REGISTRY.loaded(IMPORTERS) if hasattr(one, "find")]

    def take(self, text: Text) -> int:
        """Takes what is in a text, and remembers the lines of it that are not known. How much there was."""
        near_ns = _near(text.name) or self.now_wall_ns
        known: set[int] = set()
        count = 0
        for lines in streams(text.lines):
            for blocked in self._found(lines, near_ns):
                known.update(blocked.lines)
                self._add(blocked, text, near_ns)
                count += 1
        self.texts, self.found = self.texts + 1, self.found + count
        if not count:
            self.empty.append(text.name)
            return 0
        left = [number for number, line in enumerate(text.lines, 1) if number not in known and line.strip()]
        if left:
            self.unread.append(Unread(text.name, left))
        return count

    def _found(self, lines: Sequence[Line], near_ns: int) -> Iterator[Blocked]:
        for importer in self._importers:
            yield from importer.find(lines, near_wall_ns=near_ns)

    def done(self) -> None:
        """Adds the runs."""
        for session in self._sessions.values():
            self.intake.add_session(session)

    def _add(self, blocked: Blocked, text: Text, near_ns: int) -> None:
        began_ns = blocked.began_wall_ns
        if began_ns is None and blocked.lines:
            began_ns = wall_ns(text.lines[blocked.lines[0] - 1][:_STAMP_LENGTH], near_ns)
        session = self._session(blocked, near_ns if began_ns is None else began_ns, text.name)
        content = (blocked.tool, began_ns, blocked.duration_ns, blocked.ran_ns, blocked.stacks)
        stall = stall_of(
            blocked,
            self._own,
            stall_id=f"{session}-{_digest(repr(content))}",
            session=session,
            began_wall_ns=near_ns if began_ns is None else began_ns,
        )
        self.intake.add_issue(replace(stall, fingerprint=fingerprint(stall, CodePaths())))

    def _session(self, blocked: Blocked, began_ns: int, source: str) -> str:
        """The run: of one process, build and device there is one. When it began and ended, no log says."""
        device, end_ns = blocked.device, began_ns + blocked.duration_ns
        key = f"android-{_digest(repr((blocked.tool, device)))}"
        known = self._sessions.get(key)
        if known is None:
            self._sessions[key] = _session_of(
                key, blocked, began_ns, source=source, now_wall_ns=self.now_wall_ns
            )
            known = self._sessions[key]
        self._sessions[key] = replace(
            known,
            started_wall_ns=min(known.started_wall_ns, began_ns),
            ended_wall_ns=max(known.ended_wall_ns or 0, end_ns),
        )
        return key


def _session_of(key: str, blocked: Blocked, began_ns: int, *, source: str, now_wall_ns: int) -> Session:
    device, tool = blocked.device, blocked.tool
    return Session(
        id=key,
        name=device.process[:_TEXT_MAX] or tool,
        pid=0,
        parent_pid=0,
        host=device.model[:_TEXT_MAX] or "an Android device",
        python=device.android[:_TEXT_MAX] or "Android",
        engine=tool[:_TEXT_MAX],
        started_wall_ns=began_ns,
        end=SessionEnd.RUNNING,
        version=device.version[:_TEXT_MAX] or None,
        qualifier=device.qualifier[:_TEXT_MAX] or None,
        network=device.network[:_TEXT_MAX] or None,
        system="Android",
        cores=min(device.cores, 1_024),
        memory_bytes=min(device.memory_bytes, _MEMORY_MAX),
        imported_wall_ns=now_wall_ns,
        imported_from=source[-_TEXT_MAX:],
    )


def _digest(text: str) -> str:
    return blake2s(text.encode("utf-8", "replace")).hexdigest()[:12]


def _near(name: str) -> int | None:
    """The time in a file's name: `looper-2016-01-19_22-51-26.123.log`."""
    found = _DATE.search(name.rpartition("/")[2])
    return None if found is None else local_ns(*map(int, found.groups()))


def unread_words(unread: Iterable[Unread], most: int = 5) -> Iterator[str]:
    """A line for each text with lines that were not read, and one for the rest of these texts."""
    some = list(unread)
    for one in some[:most]:
        yield f"{one.name}: {len(one.numbers):,} lines are of nothing that is known ({_ranges(one.numbers)})"
    if len(some) > most:
        rest = sum(len(one.numbers) for one in some[most:])
        yield f"{len(some) - most:,} more files: {rest:,} such lines"


def _ranges(numbers: Sequence[int], most: int = 6) -> str:
    """`1-4, 9, 12-80`."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    shown = [str(first) if first == last else f"{first}-{last}" for first, last in runs[:most]]
    return ", ".join([*shown, "..."] if len(runs) > most else shown)
