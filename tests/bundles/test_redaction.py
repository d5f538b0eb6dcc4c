"""What is redacted is nowhere in the bundle, and equal things stay equal."""

from __future__ import annotations

import dataclasses
import functools
import re
import types
import typing
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
from tests.building.issues import FINDING, JANK, SLOW_METHOD, STARTUP
from tests.building.stalls import GETS, KILLED, SESSION, STALL
from tests.bundles.samples import bundled, members_of, taken

from loopcanary.bundles.layout import ALL, CLASSES, BundleError
from loopcanary.bundles.pseudonyms import Pseudonyms, load_key, public_file
from loopcanary.bundles.redaction import RULES, Redactor, Rule
from loopcanary.model import (
    Activity,
    Cause,
    Culprit,
    FrameFigures,
    IdleLag,
    ImportedFinding,
    InputLag,
    Jank,
    Session,
    SlowMethod,
    StackFrame,
    Stall,
    Startup,
    Target,
)
from loopcanary.model.issues.facts import IssueFacts
from loopcanary.model.issues.locks import Deadlock, LockLeak
from loopcanary.model.search import Remark
from loopcanary.model.waiting import TargetKind

KEY = b"0123456789abcdef"
ROOTS = (
    *(Stall, Jank, InputLag, IdleLag, Startup, SlowMethod, Deadlock, LockLeak),
    *(ImportedFinding, Session, Remark),
)
_KINDS = {kind.__name__ for kind in ROOTS if issubclass(kind, IssueFacts)}


hints_of = functools.cache(typing.get_type_hints)


def types_within(kind: Any) -> list[Any]:
    """The types that an annotation is put together from."""
    inner = typing.get_args(kind)
    return [kind] if not inner else [one for part in inner for one in types_within(part)]


def every_type() -> list[type]:
    """All dataclasses that a record is made of."""
    found: dict[type, None] = {}
    todo: list[type] = list(ROOTS)
    while todo:
        kind = todo.pop()
        if kind in found:
            continue
        found[kind] = None
        for hint in hints_of(kind).values():
            todo += [one for one in types_within(hint) if dataclasses.is_dataclass(one)]
    return list(found)


def text_fields() -> list[tuple[str, str]]:
    return [
        (kind.__name__, name)
        for kind in every_type()
        for name, hint in hints_of(kind).items()
        if str in types_within(hint)
    ]


def owner(kind: str) -> str:
    """Where its rules are: kinds of issues share theirs."""
    return "IssueFacts" if kind in _KINDS else kind


def test_every_text_of_the_model_has_one_rule() -> None:
    """Texts that one kind of issue has for itself are names without one."""
    shared = {field.name for field in dataclasses.fields(IssueFacts)}
    wanted = {(owner(kind), name) for kind, name in text_fields() if owner(kind) == kind or name in shared}
    assert wanted == set(RULES)


# Which classes are to take what is planted in a field.
MARKED = {
    Rule.NAME: ("names",),
    Rule.PATH: ("paths",),
    Rule.HOST: ("hosts",),
    Rule.COMMAND: ("names", "paths"),
    Rule.FREE: ("paths", "names", "source", "args", "hosts"),
    Rule.NOTE: ("paths", "names", "source", "args", "hosts"),
}
OWN = {
    "title": MARKED[Rule.FREE],
    "function": ("names",),
    "qualname": ("names",),
    "file": ("paths",),
    "source": MARKED[Rule.FREE],
}


def marks_of(kind: str, name: str) -> tuple[str, ...]:
    rule = RULES.get((owner(kind), name), Rule.NAME)
    return OWN[name] if rule is Rule.OWN else MARKED.get(rule, ())


def mark(one: str, kind: str, name: str) -> str:
    return f"MARK{one}z{kind}z{name}"


def planted(kind: str, name: str) -> str:
    """The text for a field: a mark of every class that may be in it."""
    if (kind, name) == ("Blocker", "call"):
        inside = ", ".join(mark(one, kind, name) for one in ("args", "paths", "hosts", "source"))
        return f"{mark('names', kind, name)}.get({inside})"
    marks = [mark(one, kind, name) for one in marks_of(kind, name)]
    return "/".join(marks) or f"kept-{name}"


def made(kind: Any, where: tuple[str, str] = ("", ""), **given: Any) -> Any:
    """A value with marks in all its texts, and one of everything that it can hold."""
    if kind is str:
        return planted(*where)
    if kind is Target:
        return None
    if kind is FrameFigures:
        return JANK.figures
    if dataclasses.is_dataclass(kind):
        values = {
            field.name: made(hints_of(kind)[field.name], (kind.__name__, field.name))
            for field in dataclasses.fields(kind)
        }
        return kind(**{**values, **given})
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        return made(next(one for one in inner if one is not type(None)), where)
    if origin is tuple:
        return (made(inner[0], where),) if inner[-1] is Ellipsis else tuple(made(one, where) for one in inner)
    if origin is dict:
        return {"counter": made(inner[1], where)}
    if isinstance(kind, type) and issubclass(kind, Enum):
        return next(iter(kind))
    return {int: 3, float: 0.5, bool: True}[kind]


def targets() -> list[Stall]:
    """Stalls that waited for each kind of target, with the marks that its name may have."""
    named = {TargetKind.SOCKET: ("hosts", "paths"), TargetKind.CHILD: ("names", "paths")}
    return [
        made(
            Stall,
            id=f"s1-{kind.value}",
            session="s1",
            waited_on=Target(
                kind=kind,
                name="/".join(mark(one, "Target", kind.value) for one in named.get(kind, ("paths",))),
            ),
        )
        for kind in TargetKind
    ]


def bundle(*classes: str) -> str:
    """All texts of a bundle of every kind of record, redacted so."""
    issues = [made(kind, id=f"s1-{kind.__name__}", session="s1") for kind in ROOTS if kind.__name__ in _KINDS]
    data = bundled(
        targets(),
        issues,
        [made(Session, id="s1")],
        {"kept-fingerprint": made(Remark)},
        redactor=Redactor(classes, KEY),
    )
    return b"".join(members_of(data).values()).decode()


def test_unredacted_every_mark_is_there() -> None:
    text = bundle()
    planted_marks = {
        mark(one, kind, name)
        for kind, name in text_fields()
        if kind != "Target" and (kind, name) != ("Session", "imported_from")
        for one in ((*CLASSES,)[:5] if (kind, name) == ("Blocker", "call") else marks_of(kind, name))
    }
    planted_marks |= {mark("paths", "Target", kind.value) for kind in TargetKind}
    assert {one for one in planted_marks if one not in text} == set()
    assert len(planted_marks) > 80


@pytest.mark.parametrize("one", [name for name in CLASSES if name != "fingerprints"])
def test_no_mark_of_a_redacted_class_is_left(one: str) -> None:
    assert re.findall(rf"MARK{one}\w*", bundle(one)) == []


def test_no_mark_at_all_is_left_of_all() -> None:
    text = bundle(ALL)
    assert re.findall(r"MARK\w*", text) == []
    assert "kept-fingerprint" not in text
    assert "kept-id" not in text.replace('"id":"kept-id"', "")  # ids are no secrets, and are ids alone


def test_redacted_titles_are_made_of_what_is_left() -> None:
    """Few have a cause: they are none the less sure for that."""
    redactor = Redactor([ALL], KEY)
    secret = {"title": "of SECRET", "cause": Cause.UNKNOWN}
    assert redactor.issue(replace(STARTUP, **secret)).title == "cold start took 12.0 s"
    slow = redactor.issue(replace(SLOW_METHOD, **secret))
    assert isinstance(slow, SlowMethod)
    assert slow.key_row is not None
    frame = slow.key_row.frame
    assert slow.title == f"{frame.qualname} took 1.10 s of 1.20 s ({frame.file}:80)"
    assert "load_orders" not in slow.title
    assert "orders.py" not in slow.title


def test_a_redacted_stall_says_what_it_waited_for() -> None:
    waits = replace(STALL, cause=Cause.LOCK, culprit=None, stacks=(GETS,), title="of SECRET")
    assert Redactor([ALL], KEY).issue(waits).title == "stall: waiting for an item in a queue"


def test_a_finding_s_statement_goes_with_any_class() -> None:
    for one in CLASSES:
        found = Redactor([one], KEY).issue(replace(FINDING, title="of mary"))
        assert isinstance(found, ImportedFinding)
        assert (found.at.sql, found.at.chain, found.at.said) == ("", (), ())
        assert "mary" not in repr(found)


def test_names_that_are_not_redacted_stay() -> None:
    text = bundle("paths")
    assert mark("names", "Stall", "thread") in text
    assert f"{mark('names', 'Blocker', 'call')}.get(...)" in text
    assert mark("hosts", "Session", "host") in text


def test_a_path_has_one_pseudonym_for_each_key() -> None:
    def files(data: bytes) -> set[str]:
        return set(re.findall(r"path-[0-9a-f]{10}\.py", members_of(data)["stalls-0001.jsonl"].decode()))

    first = files(bundled([STALL], redactor=Redactor(["paths"], KEY)))
    both = files(bundled([STALL, KILLED], redactor=Redactor(["paths"], KEY)))
    assert first
    assert first <= both
    assert not first & files(bundled([STALL], redactor=Redactor(["paths"], b"another key 12345")))


def test_bugs_stay_apart_and_together(tmp_path: Path) -> None:
    again = replace(STALL, id="s1-3")
    for asked in (["names", "paths"], [ALL]):
        data = bundled([STALL, KILLED, again], redactor=Redactor(asked, KEY))
        one, other, same = taken(tmp_path / "a.zip", data).stalls
        assert one.fingerprint == same.fingerprint != other.fingerprint
        assert (one.fingerprint == STALL.fingerprint) is (asked != [ALL])


def test_a_remark_stays_with_its_bug(tmp_path: Path) -> None:
    said = {STALL.fingerprint: Remark(ignored=True, note="see /srv/shop")}
    found = taken(tmp_path / "a.zip", bundled([STALL], remarks=said, redactor=Redactor([ALL], KEY)))
    assert found.remarks == {found.stalls[0].fingerprint: Remark(ignored=True, note="")}


def test_figures_stay_as_they_are(tmp_path: Path) -> None:
    found = taken(tmp_path / "a.zip", bundled(redactor=Redactor([ALL], KEY)))
    stall, session, jank = found.stalls[0], found.sessions[0], found.issues[0]
    assert (stall.ledger, stall.cause, stall.duration_ns) == (STALL.ledger, STALL.cause, STALL.duration_ns)
    assert stall.timeline is not None
    assert STALL.timeline is not None
    assert [span.length_ns for span in stall.timeline.spans] == [
        span.length_ns for span in STALL.timeline.spans
    ]
    assert stall.culprit is not None
    assert (stall.culprit.line, stall.culprit.in_app) == (87, True)
    assert session.loops[0].delay_p99_ns == SESSION.loops[0].delay_p99_ns
    assert isinstance(jank, Jank)
    assert jank.figures == JANK.figures


def test_spans_share_their_activities_still() -> None:
    shared = Activity(doing=STALL.timeline.spans[0].activity.doing, holder="worker")  # type: ignore[union-attr]
    spans = tuple(replace(span, activity=shared) for span in STALL.timeline.spans)  # type: ignore[union-attr]
    stall = replace(STALL, timeline=replace(STALL.timeline, spans=spans))  # type: ignore[type-var]
    redacted = Redactor(["names"], KEY).issue(stall)
    assert redacted.timeline is not None
    assert len({id(span.activity) for span in redacted.timeline.spans}) == 1


def test_only_the_real_standard_library_is_no_secret() -> None:
    redactor = Redactor([ALL], KEY)

    def shown(file: str, *, in_app: bool = False) -> tuple[str, str]:
        frame = StackFrame(function="decode", qualname="JSONDecoder.decode", file=file, line=1, in_app=in_app)
        (stack,) = redactor.issue(
            replace(STALL, stacks=(replace(STALL.stacks[0], frames=(frame,)),), timeline=None)
        ).stacks
        return stack.frames[0].file, stack.frames[0].qualname

    assert shown("/opt/py/lib/python3.12/json/decoder.py") == (
        "<stdlib>/json/decoder.py",
        "JSONDecoder.decode",
    )
    for file in (
        "/opt/py/lib/python3.12/site-packages/json/decoder.py",
        "/opt/py/lib/python3.12/json/secret.py",
        "/opt/py/lib/python3.12/json/../secret.py",
        "/srv/json/decoder.py",
        "<frozen secret>",
    ):
        assert public_file(file) is None
        assert shown(file)[0].startswith("path-")
        assert shown(file)[1].startswith("name-")
    assert shown("<frozen importlib._bootstrap>")[0] == "<frozen importlib._bootstrap>"
    assert shown("/opt/py/lib/python3.12/json/decoder.py", in_app=True)[1].startswith("name-")


def test_a_function_keeps_its_name_inside_its_qualified_name() -> None:
    culprit = Redactor(["names"], KEY).issue(STALL).culprit
    assert culprit is not None
    assert culprit.qualname.split(".")[1] == culprit.function != "load_orders"
    nested = replace(culprit, qualname="a.<locals>.b", function="b", in_app=True)
    again = Redactor(["names"], KEY).issue(replace(STALL, culprit=nested)).culprit
    assert isinstance(again, Culprit)
    assert re.fullmatch(r"name-\w{10}\.<locals>\.name-\w{10}", again.qualname)


def test_names_that_python_gives_stay() -> None:
    redacted = Redactor(["names"], KEY).issue(replace(STALL, thread="MainThread", task="Task-17"))
    assert (redacted.thread, redacted.task) == ("MainThread", "Task-17")
    kinds = ("RLock", "multiprocessing.Lock", "multiprocessing.RLock")
    assert tuple(map(Pseudonyms(KEY).name, kinds)) == kinds


def test_what_cannot_be_redacted_is_said() -> None:
    with pytest.raises(BundleError, match="'bytes' cannot be redacted"):
        Redactor(["bytes"], KEY)


def test_a_key_is_made_once_and_for_its_user_alone(tmp_path: Path) -> None:
    path = tmp_path / "state" / "redaction.key"
    key = load_key(path, make=True)
    assert load_key(path, make=True) == key
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(BundleError, match="cannot be read"):
        load_key(tmp_path / "none", make=False)
    (tmp_path / "short").write_text("short\n")
    with pytest.raises(BundleError, match="is not a key"):
        load_key(tmp_path / "short", make=False)
