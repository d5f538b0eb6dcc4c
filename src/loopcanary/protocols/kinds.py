"""Kinds of issues: the questions that the parts ask one, and how they find the kind of an issue.

loopcanary's own kinds are in `loopcanary.kinds`, each a class in a file of its own; a third party's is
registered in the group `loopcanary_tools.kinds` (docs/how-to/plugins.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar, cast

from loopcanary.document.parts import Block, Piece
from loopcanary.model import Issue, Session, Stall
from loopcanary.model.issues.facts import IssueFacts
from loopcanary.model.issues.kind import IssueKind
from loopcanary.model.search import IssueGroup
from loopcanary.registry import Registration
from loopcanary.wire import Json

try:
    from _blake2 import blake2s  # what hashlib gives, without OpenSSL: two megabytes in a watched process
except ImportError:  # an interpreter that hashes in another way
    from hashlib import blake2s

from loopcanary.document.makers import line, number, prose, said
from loopcanary.document.parts import Facts, Items
from loopcanary.document.verdict import verdict, where
from loopcanary.document.wrapping import plain
from loopcanary.model.stack_frame import plain_cell
from loopcanary.model.stall import Cause
from loopcanary.model.units import format_length
from loopcanary.registry import KINDS, REGISTRY
from loopcanary.wire import UnknownKindError, WireError, from_wire, to_wire
from loopcanary.words.text import count_of, printable

_I = TypeVar("_I", bound="Stall | IssueFacts")
_NOTICE_MAX = 300


class Kind(Generic[_I]):
    """A kind of issue. Its class sets `issue_class` and `words`, and overrides methods whose default does not
    fit. Objects have no state: `kind_of` makes a new one each time."""

    issue_class: type[_I]
    """The frozen dataclass of its issues, below model.IssueFacts; its `kind` is the registered name. A text
    field that is not one of IssueFacts is redacted as a name."""
    words: str
    """What people call one issue."""
    list_words: str = ""
    """What people call several issues; empty: the same as `words`."""
    noun: str = "issue"
    """What issues of a bug are counted as."""
    is_found_early: bool = False
    """Whether its issues are reported while they go on. Their duration is then the time until they were
    found."""
    is_judged: bool = False
    """Whether loopcanary diagnoses its issues from the stalls in them. Tracers may then not report complete
    issues."""

    # ---- words ----------------------------------------------------------------------------------

    def counted(self, number: int) -> str:
        """`1 slow method`, `12 slow methods`."""
        return f"{number:,} {self.words if number == 1 else self.list_words or self.words}"

    def title(self, issue: _I) -> str | None:  # noqa: ARG002 - as every kind's
        """A title, in one line, for an issue whose tracer gave none, or whose own was redacted. None: the
        caller makes one from the kind's name."""
        return None

    def advice(self, issue: _I) -> str | None:  # noqa: ARG002
        """What to do about an issue that has no advice of its own; None: no advice is known."""
        return None

    def evidence(self, issue: _I) -> Iterable[str]:  # noqa: ARG002
        """Sentences that compare the issue's figures with their limits."""
        return ()

    def all_evidence(self, issue: _I) -> tuple[str, ...]:
        """The sentences of `evidence`, and the number of stalls on the issue's thread."""
        own = tuple(self.evidence(issue))
        if not issue.stalls or self.is_judged:  # the evidence of a judged one has its stalls
            return own
        return (*own, meanwhile_words(issue))

    def notice(self, issue: _I) -> tuple[str, str]:
        """Title and reason of a notification. The reason has the first sentence of the evidence, and where
        the thread was held, if a stall shows it."""
        is_said = issue.title.startswith(self.words)
        culprit = issue.culprit
        held = plain(verdict(issue.cause, None)) if issue.cause is not Cause.UNKNOWN else ""
        if culprit is not None:
            file = culprit.file.rpartition("/")[2]
            held = f"{held or 'the thread was held'} in {culprit.qualname} ({file}:{culprit.line})"
        why = "; ".join(filter(None, (*self.all_evidence(issue)[:1], held)))
        return issue.title if is_said else f"{self.words}: {issue.title}", printable(why, _NOTICE_MAX)

    def run(self, issue: _I) -> str:  # noqa: ARG002
        """The text about the issue in a report's list of runs; empty: no text."""
        return ""

    # ---- the document ---------------------------------------------------------------------------

    def lead(self, issue: _I) -> Piece:
        """The first part of the issue's headline."""
        found = ", found after" if self.is_found_early and issue.duration_ns else ""
        return number(f"{self.words}{found} {format_length(issue.duration_ns)}".rstrip())

    def why(self, issue: _I) -> Iterable[Block]:
        """Blocks with the issue's place, cause and evidence."""
        if issue.culprit is not None:
            yield from where(issue.culprit, issue.cause)
        if issue.is_news:  # what stayed within its limit needs no cause
            yield line(verdict(issue.cause, None))
        yield Items(tuple(said(prose(words)) for words in self.all_evidence(issue)))

    def figures(self, issue: _I) -> Facts:  # noqa: ARG002
        """Labelled facts that stand among those of every issue; one with the same label replaces theirs."""
        return Facts(())

    def parts(self, issue: _I) -> Iterable[Block]:  # noqa: ARG002
        """Blocks below the facts."""
        return ()

    def after(self, issue: _I) -> Iterable[Block]:  # noqa: ARG002
        """Blocks below the stacks."""
        return ()

    # ---- the bug ---------------------------------------------------------------------------------

    def identity(self, issue: _I) -> tuple[str, ...]:
        """Texts `name=value` that are the same for the same bug: the culprit's function, or the thread."""
        culprit = issue.culprit
        if culprit is None:
            return (f"thread={issue.thread}",)
        return function_identity(culprit.qualname, culprit.file)

    def fingerprint(self, issue: _I, main: Stall | None = None) -> str:  # noqa: ARG002
        """The fingerprint, made of the one that the tracer gave, or of `identity`.

        Args:
            issue: As its tracer reported it.
            main: The stall that held most of it; None: there is none, or the kind does not ask for it.
        """
        own = (f"bug={issue.fingerprint}",) if issue.fingerprint else self.identity(issue)
        return fingerprint_of(issue.kind.value, (*own, *_limit(issue)))

    def grouped(self, issue: _I, stalls: Sequence[Stall]) -> tuple[str, ...]:  # noqa: ARG002
        """The texts `name=value` that a stored issue's fingerprint was made of; empty if they are not known.
        `stalls` are those in the issue."""
        kind, parts = issue.kind.value, (*self.identity(issue), *_limit(issue))
        return (f"kind={kind}", *parts) if fingerprint_of(kind, parts) == issue.fingerprint else ()

    # ---- from the tracer to the store --------------------------------------------------------------

    def fitted(self, issue: _I, session: Session) -> _I:  # noqa: ARG002
        """Cuts an issue that a tracer reported to size, and completes it. ValueError: it is refused."""
        return issue

    def packed(self, issue: _I) -> Json:
        """The document that a store keeps."""
        return to_wire(issue)

    def unpacked(self, document: Json) -> _I:
        """The issue of such a document. ValueError: the document is not one."""
        return from_wire(self.issue_class, document, "issue")


def kind_of(issue: _I) -> Kind[_I]:
    return kind_named(issue.kind)


def kind_named(kind: IssueKind) -> Kind[Any]:
    """The kind of this name; for an unknown one, a kind that knows no more than the name. Raises what the
    import of a third party's raises."""
    found = REGISTRY.find(KINDS, kind.value)
    if found is not None:
        return _made(found)
    unknown: Kind[Any] = Kind()
    unknown.words = kind.value.replace("-", " ")
    return unknown


def kind_in(document: object) -> Kind[Any]:
    """The kind that an issue's JSON names. WireError: it names none. UnknownKindError: it is not here."""
    name = document.get("kind") if isinstance(document, dict) else None
    if not isinstance(name, str):
        raise WireError(f"issue.kind: {name!r} is not a kind of issue")
    return _readable(name)


def issue_from_wire(document: object) -> Issue:
    """Reads an issue, whose `kind` names its class. UnknownKindError: the kind cannot be read."""
    return cast("Issue", from_wire(kind_in(document).issue_class, document, "issue"))


def readable_kinds() -> list[str]:
    """The kinds whose issues can be read here, without those of plugins that are missing or fail."""
    return [one.name for one in REGISTRY.of(KINDS) if one.is_built_in or _is_readable(one.name)]


def named_kinds() -> Iterator[tuple[str, Kind[Any]]]:
    """All kinds that can be loaded, with their names."""
    for one, kind in REGISTRY.loaded(KINDS):
        yield one.name, kind()


def issues_title(groups: Sequence[IssueGroup]) -> str:
    """The title of a list of bugs, made of the words of their kinds."""
    there = {group.kind.value: kind_named(group.kind) for group in groups}
    kinds = [there[one.name] for one in REGISTRY.of(KINDS) if one.name in there]
    return ", ".join(dict.fromkeys(kind.list_words or kind.words for kind in kinds)).capitalize()


def meanwhile_words(issue: Issue) -> str:
    """`2 stalls on its thread meanwhile`."""
    return f"{count_of(len(issue.stalls), 'stall')} on its thread meanwhile"


def function_identity(qualname: str, file: str) -> tuple[str, str]:
    """Texts that identify a function without its line; of its file they have the name and the folder's."""
    return f"function={qualname}", f"file={'/'.join(plain_cell(file).replace(chr(92), '/').split('/')[-2:])}"


def fingerprint_of(kind: str, parts: Sequence[str]) -> str:
    """The name of the kind and twelve hexadecimal digits."""
    digest = blake2s("\0".join((kind, *parts)).encode("utf-8", "replace")).hexdigest()
    return f"{kind}:{digest[:12]}"


def _limit(issue: Issue) -> tuple[str, ...]:
    """Issues within their limit are no instance of the bug that those over it are."""
    return () if issue.is_news else ("limit=kept",)


def refuse_negative(**numbers: Iterable[int]) -> None:
    """ValueError: one of these is less than 0."""
    for name, some in numbers.items():
        if any(number < 0 for number in some):
            raise ValueError(f"{name}: a number in it is negative")


def _readable(name: str) -> Kind[Any]:
    found = REGISTRY.find(KINDS, name)
    if found is None:
        raise UnknownKindError(name, "no installed plugin reads it")
    try:
        return _made(found)
    except Exception as error:
        if found.is_built_in:
            raise
        raise UnknownKindError(name, "its plugin cannot be loaded") from error


def _is_readable(name: str) -> bool:
    try:
        _readable(name)
    except UnknownKindError:
        return False
    return True


def _made(found: Registration) -> Kind[Any]:
    kind = found.load()()
    if not isinstance(kind, Kind):
        raise TypeError(f"{found.target!r} is not a kind of issue")
    return kind
