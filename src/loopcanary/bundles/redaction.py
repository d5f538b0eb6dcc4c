"""Replaces names in a bundle that strangers may see; docs/how-to/bundles.md is the page for people.

Every text of the model is in one table here (`RULES`), by its type and field: a field that is added and
not listed fails a test. Free text can hold anything of all classes: it goes with the first of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any, TypeVar, cast

from loopcanary.bundles.layout import ALL, CLASSES, BundleError
from loopcanary.bundles.pseudonyms import Pseudonyms, public_file
from loopcanary.model import Blocker, Culprit, Issue, Session, StackFrame, Stall, Target
from loopcanary.model.issues.facts import IssueFacts
from loopcanary.model.search import Remark
from loopcanary.model.waiting import TargetKind
from loopcanary.protocols.kinds import kind_of
from loopcanary.words.causes import cause_words

_T = TypeVar("_T")


class Rule(Enum):
    """The kind of a text, which decides how it is redacted."""

    PLAIN = "plain"
    """A word of loopcanary, Python or the kernel, or an id made of time, pid and chance: it stays."""
    FINGERPRINT = "fingerprint"
    NAME = "name"
    PATH = "path"
    HOST = "host"
    COMMAND = "command"
    """A path or a name."""
    FREE = "free"
    """Sentences, which any class removes."""
    NOTE = "note"
    """Sentences that are never null."""
    OWN = "own"
    """The type has a function of its own below."""


def _of(kind: str, **by_rule: str) -> dict[tuple[str, str], Rule]:
    return {(kind, field): Rule[rule] for rule, names in by_rule.items() for field in names.split()}


RULES: dict[tuple[str, str], Rule] = {
    **_of(
        "Stall",
        PLAIN="id session loop engine",
        FINGERPRINT="fingerprint",
        NAME="thread callback task scene",
        FREE="evidence advice",
        OWN="title",
    ),
    **_of("IssueKind", PLAIN="value"),
    **_of("Culprit", OWN="function qualname file source"),
    **_of("StackFrame", OWN="function qualname file"),
    **_of("Blocker", OWN="call function"),
    **_of("Target", OWN="name"),
    **_of("Holder", NAME="thread lock"),
    **_of("ThreadView", PLAIN="state", NAME="name"),
    **_of("KilledBy", PLAIN="signal", COMMAND="command", FREE="reason"),
    **_of("Activity", PLAIN="state syscall", NAME="lock holder"),
    **_of("Pause", NAME="thread"),
    **_of("EarlierWork", NAME="name task"),
    **_of("TracedWork", NAME="name task"),
    **_of("Contributor", NAME="name"),
    **_of("Scheduler", PATH="file"),
    **_of(
        "Session",
        PLAIN="id python engine machine system statistics",
        NAME="name version imported_from",
        HOST="host",
        FREE="labels",
        COMMAND="command",
    ),
    **_of("WaitingTasks", NAME="name waits"),
    **_of("PriorityChange", PLAIN="call", PATH="file", NAME="function"),
    **_of("Surroundings", PLAIN="policy"),
    **_of("LoopHealth", PLAIN="kind", NAME="thread"),
    **_of("SceneFrames", PLAIN="loop", NAME="thread scene"),
    **_of("InputFigures", PLAIN="loop", NAME="thread worst"),
    **_of("IdleFigures", PLAIN="loop", NAME="thread name"),
    **_of(
        "IssueFacts",
        PLAIN="id session loop stalls",
        FINGERPRINT="fingerprint",
        NAME="thread scene",
        FREE="advice",
        OWN="title",
    ),
    **_of("Phase", NAME="name"),
    **_of("LateFrame", PLAIN="stalls"),
    **_of("Handled", PLAIN="stall", NAME="name"),
    **_of("TaskWait", NAME="task waits_for holds"),
    **_of("FoundAt", PATH="file database", NAME="table owner", NOTE="sql", FREE="chain said"),
    **_of("Remark", NOTE="note"),
}

_CALLEE = re.compile(r"\s*([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)\s*\(")
_TARGETS = {TargetKind.SOCKET: {"hosts", "paths"}, TargetKind.CHILD: {"names", "paths"}}
"""The classes that replace the name of a target; for other targets `paths`."""


class Redactor:
    """Replaces the texts of its classes, in every record alike; without a class, none."""

    def __init__(self, classes: Iterable[str], key: bytes) -> None:
        asked = set(classes)
        asked = set(CLASSES) if ALL in asked else asked
        if unknown := asked - set(CLASSES):
            known = ", ".join([*CLASSES, ALL])
            raise BundleError(f"{min(unknown)!r} cannot be redacted: use {known}")
        self.classes = tuple(sorted(asked))
        self._pseudonyms = Pseudonyms(key)
        self._plans: dict[type, tuple[tuple[str, Rule | None], ...]] = {}
        self._seen: dict[int, Any] = {}

    def issue(self, issue: Issue) -> Issue:
        return self._record(issue)

    def session(self, session: Session) -> Session:
        return self._record(session)

    def remark(self, fingerprint: str, remark: Remark) -> tuple[str, Remark]:
        return self._text(Rule.FINGERPRINT, fingerprint), self._record(remark)

    def _record(self, record: _T) -> _T:
        if not self.classes:
            return record
        # Spans share their activities, and the wire form knows them by identity.
        self._seen = {}
        return cast("_T", self._value(record))

    def _value(self, value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(self._value(one) for one in value)
        if not is_dataclass(value) or isinstance(value, type):
            return value
        if id(value) not in self._seen:
            # With the value itself, which so outlives its number here.
            self._seen[id(value)] = value, self._object(value)
        return self._seen[id(value)][1]

    def _object(self, value: Any) -> Any:
        own: dict[type, Callable[[Any], Any]] = {
            StackFrame: self._frame,
            Culprit: self._culprit,
            Blocker: self._blocker,
            Target: self._target,
        }
        if type(value) in own:
            return own[type(value)](value)
        changes: dict[str, Any] = {}
        if type(value) not in self._plans:
            self._plans[type(value)] = _plan(type(value))
        for name, rule in self._plans[type(value)]:
            before = getattr(value, name)
            after = self._value(before) if rule is None else self._ruled(rule, before)
            if after is not before:
                changes[name] = after
        changed = replace(value, **changes) if changes else value
        return replace(changed, title=_title(changed)) if isinstance(changed, Issue) else changed

    def _ruled(self, rule: Rule, value: Any) -> Any:
        if value is None:
            return None
        if rule is Rule.NAME and isinstance(value, tuple):
            return tuple(self._text(rule, one) for one in value)
        if isinstance(value, dict):
            return {name: self._pseudonyms.of("label", text) for name, text in value.items()}
        if rule is Rule.FREE:
            return () if isinstance(value, tuple) else None
        return "" if rule is Rule.NOTE else self._text(rule, value)

    def _text(self, rule: Rule, text: str) -> str:
        if rule is Rule.NAME and "names" in self.classes:
            return self._pseudonyms.name(text)
        if rule is Rule.PATH and "paths" in self.classes:
            return self._pseudonyms.path(text)
        if rule is Rule.HOST and "hosts" in self.classes:
            return self._pseudonyms.of("host", text) if text else text
        if rule is Rule.COMMAND and {"names", "paths"} & set(self.classes):
            return self._pseudonyms.of("command", text) if text else text
        if rule is Rule.FINGERPRINT and "fingerprints" in self.classes:
            return "0:" + self._pseudonyms.of("fingerprint", text).rpartition("-")[2]
        return text

    def _frame(self, frame: StackFrame) -> StackFrame:
        function, qualname, file = self._place(frame)
        return replace(frame, function=function, qualname=qualname, file=file)

    def _culprit(self, culprit: Culprit) -> Culprit:
        function, qualname, file = self._place(culprit)
        return replace(
            culprit, function=function, qualname=qualname, file=file, source=None, column=0, end_column=0
        )

    def _place(self, frame: StackFrame | Culprit) -> tuple[str, str, str]:
        """Function, qualified name and file; names of the standard library are no secret."""
        is_public = not frame.in_app and public_file(frame.file) is not None
        rename = "names" in self.classes and not is_public
        name = self._pseudonyms.name if rename else str
        return name(frame.function), name(frame.qualname), self._text(Rule.PATH, frame.file)

    def _blocker(self, blocker: Blocker) -> Blocker:
        call = None
        if blocker.call is not None and not {"names", "source"} & set(self.classes):
            # A dotted name holds neither path nor host; the arguments may.
            callee = _CALLEE.match(blocker.call)
            call = None if callee is None else f"{callee[1]}(...)"
        function = None if blocker.function is None else self._text(Rule.NAME, blocker.function)
        return replace(blocker, call=call, function=function)

    def _target(self, target: Target) -> Target:
        if not target.name or not _TARGETS.get(target.kind, {"paths"}) & set(self.classes):
            return target
        return replace(target, name=self._pseudonyms.of(target.kind.value, target.name))


def _plan(kind: type) -> tuple[tuple[str, Rule | None], ...]:
    """The fields with texts and their rules; None: the field has values inside. Texts of an issue's own, and
    of a third party's values, are names."""
    owner = "IssueFacts" if issubclass(kind, IssueFacts) else kind.__name__ if _is_ours(kind) else ""
    found: list[tuple[str, Rule | None]] = []
    for field in fields(kind):
        rule = RULES.get((owner, field.name))
        if rule is not None:
            found += [] if rule in (Rule.PLAIN, Rule.OWN) else [(field.name, rule)]
        elif any(name in str(field.type) for name in _WITH_TEXTS):
            found.append((field.name, None))
        elif not _is_ours(kind) or owner == "IssueFacts":
            found.append((field.name, Rule.NAME if _TEXT.search(str(field.type)) else None))
    return tuple(found)


def _is_ours(kind: type) -> bool:
    return kind.__module__.startswith("loopcanary.")


_TEXT = re.compile(r"\bstr\b")
_WITH_TEXTS = frozenset(kind for kind, _ in RULES) | {
    "TaskSurvey",
    "Timeline",
    "Span",
    "Portion",
    "WeightedStack",
    "TraceFigures",
    "CallRow",
    "TracedCall",
    "TracedCalls",
}
"""Types with texts in them, or in what they hold."""


def _title(issue: Issue) -> str:
    """A new title, from the facts that are left: cause and place, or the kind's own words."""
    kind = kind_of(issue)
    own = None if kind.is_judged else kind.title(issue)
    if own is not None:
        return own
    culprit = issue.culprit
    place = "" if culprit is None else f" in {culprit.function} ({culprit.file}:{culprit.line})"
    words = cause_words(issue.cause, issue if isinstance(issue, Stall) else None)
    return f"{issue.kind.value}: {words}{place}"
