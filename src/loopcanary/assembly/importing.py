"""What other monitors wrote, taken into a store: texts through the importers, what they find as stalls."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from hashlib import blake2s
from typing import TYPE_CHECKING

from loopcanary.diagnosis.code.ownership import CodePaths
from loopcanary.diagnosis.fingerprint import fingerprint
from loopcanary.importers.issues import finding_of, jank_of, start_of
from loopcanary.importers.java import JavaOwnership, local_ns, wall_ns
from loopcanary.importers.matrix_calls import is_mapping, methods_of, with_calls
from loopcanary.importers.sources import Text, says_nothing, streams, unquoted
from loopcanary.importers.verdicts import stall_of
from loopcanary.late_dataclass import dataclass
from loopcanary.model import Session, SessionEnd
from loopcanary.model.figures import SceneFrames, TraceFigures
from loopcanary.protocols.imports import Blocked, SeenFinding, SeenFrames, SeenStart
from loopcanary.protocols.kinds import kind_of
from loopcanary.registry import IMPORTERS, REGISTRY
from loopcanary.words.android import LOOPER

if TYPE_CHECKING:
    from typing import Any

    from loopcanary.model import ImportedFinding, Startup
    from loopcanary.protocols.imports import CodePlace, Line, Seen, TextImporter
    from loopcanary.protocols.kinds import Kind
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
    _sessions: dict[str, Session] = field(default_factory=dict)
    _waiting: list[tuple[Blocked, Text, int]] = field(default_factory=list)
    """With methods whose names may come with a later text."""
    _frames: dict[tuple[str, str | None, int], SceneFrames] = field(default_factory=dict)
    """By run, scene and rate of the screen."""
    _methods: dict[int, CodePlace] = field(default_factory=dict)
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
        if is_mapping(text.lines):
            self._methods.update(methods_of(text.lines))
            return 1
        for lines in streams(text.lines):
            for seen in self._found(lines, near_ns):
                known.update(seen.lines)
                count += 1
                if isinstance(seen, SeenFrames):
                    self._add_frames(seen, text, near_ns)
                elif not isinstance(seen, Blocked):
                    self._add_other(seen, text, near_ns)
                elif seen.calls:
                    began_ns = _began(seen, text, near_ns)
                    kept = replace(seen, began_wall_ns=began_ns, lines=())  # not the text: there may be many
                    self._waiting.append((kept, Text(text.name, []), near_ns))
                else:
                    self._add(seen, text, near_ns)
        self.texts, self.found = self.texts + 1, self.found + count
        if not count:
            self.empty.append(text.name)
            return 0
        left = [
            number
            for number, line in enumerate(text.lines, 1)
            if number not in known and not says_nothing(line)
        ]
        if left:
            self.unread.append(Unread(text.name, left))
        return count

    def _found(self, lines: Sequence[Line], near_ns: int) -> Iterator[Seen]:
        for importer in self._importers:
            yield from importer.find(lines, near_wall_ns=near_ns)

    def done(self) -> None:
        """Adds what waited for the names of its methods, and the runs."""
        for seen, text, near_ns in self._waiting:
            self._add(seen, text, near_ns)
        for session in self._sessions.values():
            of_it = [figures for (key, *_), figures in self._frames.items() if key == session.id]
            self.intake.add_session(replace(session, traces=TraceFigures(frames=tuple(of_it))))

    def _add(self, blocked: Blocked, text: Text, near_ns: int) -> None:
        began_ns = _began(blocked, text, near_ns)
        session = self._session(blocked, near_ns if began_ns is None else began_ns, text.name)
        content = (blocked.tool, began_ns, blocked.duration_ns, blocked.ran_ns, blocked.stacks, blocked.calls)
        methods = {**self._methods, **blocked.methods}
        own = self._own.of_process(blocked.device.process, _places(blocked, methods))
        stall = stall_of(
            blocked,
            own,
            stall_id=f"{session}-{_digest(repr(content))}",
            session=session,
            began_wall_ns=near_ns if began_ns is None else began_ns,
        )
        if blocked.calls:
            stall = with_calls(stall, blocked.calls, methods, own)
        bare = (
            replace(stall, stacks=()) if not blocked.stacks else stall
        )  # those of calls differ from day to day
        self.intake.add_issue(replace(stall, fingerprint=fingerprint(bare, CodePaths())))

    def _add_frames(self, seen: SeenFrames, text: Text, near_ns: int) -> None:
        began_ns = _began(seen, text, near_ns)
        session = self._session(seen, near_ns if began_ns is None else began_ns, text.name)
        content = (seen.tool, began_ns, seen.scene, seen.drop_level, seen.drop_sum, seen.fps)
        jank = jank_of(
            seen,
            issue_id=f"{session}-jank-{_digest(repr(content))}",
            session=session,
            began_wall_ns=near_ns if began_ns is None else began_ns,
        )
        scene = SceneFrames(thread=jank.thread, loop=LOOPER, scene=seen.scene, figures=jank.figures)
        key = (session, seen.scene, jank.figures.refresh_mhz)
        known = self._frames.get(key)
        self._frames[key] = scene if known is None else replace(known, figures=known.figures + scene.figures)
        self.intake.add_issue(replace(jank, fingerprint=kind_of(jank).fingerprint(jank)))

    def _add_other(self, seen: SeenStart | SeenFinding, text: Text, near_ns: int) -> None:
        began_ns = _began(seen, text, near_ns)
        wall_ns = near_ns if began_ns is None else began_ns
        session = self._session(seen, wall_ns, text.name)
        content = repr((began_ns, replace(seen, lines=())))
        issue: ImportedFinding | Startup
        if isinstance(seen, SeenStart):
            issue_id = f"{session}-startup-{_digest(content)}"
            issue = start_of(seen, issue_id=issue_id, session=session, began_wall_ns=wall_ns)
        else:
            issue_id = f"{session}-finding-{_digest(content)}"
            issue = finding_of(seen, self._own, issue_id=issue_id, session=session, began_wall_ns=wall_ns)
        kind: Kind[Any] = kind_of(issue)
        self.intake.add_issue(
            replace(
                issue,
                title=kind.title(issue) or issue.kind.value,
                advice=issue.advice or kind.advice(issue),
                fingerprint=kind.fingerprint(issue),
            )
        )

    def _session(self, blocked: Seen, began_ns: int, source: str) -> str:
        """The run: of one process, build and device there is one. When it began and ended, no log says."""
        device, end_ns = blocked.device, began_ns + getattr(blocked, "duration_ns", 0)
        same = (device.process, device.version, device.qualifier, device.model, device.android)
        key = f"android-{_digest(repr((blocked.tool, same)))}"
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


def _session_of(key: str, blocked: Seen, began_ns: int, *, source: str, now_wall_ns: int) -> Session:
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
        labels={
            name: value[:_TEXT_MAX]
            for name, value in (("qualifier", device.qualifier), ("network", device.network))
            if value
        },
        system="Android",
        cores=min(device.cores, 1_024),
        memory_bytes=min(device.memory_bytes, _MEMORY_MAX),
        imported_wall_ns=now_wall_ns,
        imported_from=source[-_TEXT_MAX:],
    )


def _places(blocked: Blocked, methods: Mapping[int, CodePlace]) -> Iterator[CodePlace]:
    for stack in blocked.stacks:
        yield from stack.frames
    for call in blocked.calls:
        if call.id in methods:
            yield methods[call.id]


def _began(seen: Seen, text: Text, near_ns: int) -> int | None:
    """As it says, or as logcat says of its first line."""
    if seen.began_wall_ns is not None or not seen.lines:
        return seen.began_wall_ns
    return wall_ns(unquoted(text.lines[seen.lines[0] - 1]).lstrip()[:_STAMP_LENGTH], near_ns)


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
        yield f"{one.name}: {len(one.numbers):,} lines without known content ({_ranges(one.numbers)})"
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
