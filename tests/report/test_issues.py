"""The pages of issues of other kinds than stalls: jank, late input, idle work."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from tests.building.anything import any_of
from tests.building.issues import (
    DEADLOCK,
    FINDING,
    IDLE_LAG,
    INPUT_LAG,
    ISSUES,
    JANK,
    SLOW_METHOD,
    START_IN_TIME,
    STARTUP,
)
from tests.building.stalls import BEGAN, HOSTILE, MS, SESSION, STALL, S, hostile_stall
from tests.report.schema_check import Place, problems
from tests.report.test_report import NOW, RAW, SCHEMA, as_markdown, as_shown, golden, on_screen, report_of

from loopcanary.assembly.explanations import why_grouped
from loopcanary.document.parts import Document
from loopcanary.model import (
    CallRow,
    FoundAt,
    IdleLag,
    ImportedFinding,
    InputLag,
    Jank,
    LagIssue,
    SessionEnd,
    SlowMethod,
    StackFrame,
    Startup,
)
from loopcanary.model.issues.locks import Deadlock, TaskWait
from loopcanary.protocols.kinds import fingerprint_of, kind_of
from loopcanary.report import as_json
from loopcanary.report.issue import circumstances, issue_blocks, over_at
from loopcanary.report.model import Report, of_bug, of_issue
from loopcanary.store import Store
from loopcanary.wire import time_from_text

BEHIND = replace(
    JANK,
    id="s1-jank-9",
    fingerprint=fingerprint_of("jank", (STALL.fingerprint,)),
    cause=STALL.cause,
    culprit=STALL.culprit,
    advice=STALL.advice,
    stalls=(STALL.id, "s1-7"),
    worst=(
        replace(JANK.worst[0], stalls=(STALL.id,)),
        replace(JANK.worst[0], duration_ns=90 * MS, stalls=()),
    ),
)


@pytest.fixture
def full(store: Store) -> Store:
    store.put([SESSION], [STALL])
    for issue in (*ISSUES, BEHIND, replace(BEHIND, id="s1-jank-10", began_wall_ns=BEGAN + 40 * S)):
        store.put_issue(issue)
    return store


def page_of(store: Store, issue: LagIssue) -> Report:
    return of_issue(store.reader, issue, now_wall_ns=NOW, explain=why_grouped)


def group_of(store: Store, fingerprint: str = BEHIND.fingerprint) -> Report:
    report = of_bug(store.reader, fingerprint, limit=20, now_wall_ns=NOW, explain=why_grouped)
    assert report is not None
    return report


@pytest.mark.parametrize(
    "issue",
    [BEHIND, INPUT_LAG, IDLE_LAG, STARTUP, SLOW_METHOD, FINDING],
    ids=["jank", "input", "idle", "startup", "slow-method", "finding"],
)
def test_an_issue_s_page(full: Store, issue: LagIssue) -> None:
    if issue is FINDING:
        full.put_issue(issue)
    report = page_of(full, issue)
    golden(f"issue-{issue.kind.value}.txt", as_shown(report))
    golden(f"issue-{issue.kind.value}.md", as_markdown(report))
    document = json.loads(as_json.render(report))
    assert list(problems(document, SCHEMA, Place(SCHEMA))) == []
    assert [one["id"] for one in document["issues"]] == [issue.id]
    assert document["issues"][0]["evidence"] == list(kind_of(issue).all_evidence(issue))
    assert [group["fingerprint"] for group in document["issue_groups"]] == [issue.fingerprint]
    assert [one["id"] for one in document["stalls"]] == [one for one in issue.stalls if one == STALL.id]


def test_a_bug_shows_its_longest_and_lists_the_latest(full: Store) -> None:
    report = group_of(full)
    golden("issue-group.txt", as_shown(report))
    golden("issue-group.md", as_markdown(report))
    document = json.loads(as_json.render(report))
    assert list(problems(document, SCHEMA, Place(SCHEMA))) == []
    [group] = document["issue_groups"]
    assert group["issue_ids"] == ["s1-jank-10", "s1-jank-9"]
    assert group["grouped_by"] == ["kind=jank", f"stall={STALL.fingerprint}"]


def test_a_group_that_is_gone_has_no_page(full: Store) -> None:
    assert of_bug(full.reader, "jank:gone", limit=1, now_wall_ns=NOW, explain=lambda *_: ()) is None


def test_the_report_ranks_bugs_by_time_and_names_each(full: Store) -> None:
    report = report_of(full)
    assert [group.count for group in report.issue_groups] == [2, 1, 1, 1, 1, 1]
    text = as_shown(report, width=120)
    for number, group in enumerate(report.issue_groups, start=2):  # the stall's bug is the first
        assert re.search(rf"^{number} .*\s{re.escape(group.fingerprint)}$", text, re.MULTILINE)
        assert group.worst_id in text
    cut = report_of(full, limit=2)
    assert "and 4 more bugs" in as_shown(cut)
    assert "and 4 more bugs" in as_markdown(cut)


@pytest.mark.parametrize(
    ("issue", "parts"),
    [
        (JANK, ("kind=jank", "loop=pygame", "scene=boss")),
        (INPUT_LAG, ("kind=input", "loop=pygame", "event=KeyDown")),
        (IDLE_LAG, ("kind=idle", "loop=tk", "handler=thumbs")),
    ],
    ids=["jank", "input", "idle"],
)
def test_without_a_stall_it_is_the_place_that_groups(issue: LagIssue, parts: tuple[str, ...]) -> None:
    place = [part.partition("=")[2] for part in parts[1:]]
    one = replace(issue, loop=place[0], fingerprint=fingerprint_of(issue.kind.value, place))
    assert kind_of(one).fingerprint(one) == one.fingerprint
    assert why_grouped(one, ()) == parts
    assert why_grouped(replace(one, fingerprint="jank:other"), ()) == ()


@pytest.mark.parametrize(
    ("issue", "parts"),
    [
        (STARTUP, ("kind=startup", "start=cold", "program=shop")),
        (START_IN_TIME, ("kind=startup", "start=warm", "program=shop", "limit=kept")),
        (SLOW_METHOD, ("kind=slow-method", "function=Orders.load_orders", "file=shop/orders.py")),
        (FINDING, ("kind=finding", "rule=table-scan", "statement=select * from orders where customer = ?")),
    ],
    ids=["startup", "start in time", "slow-method", "finding"],
)
def test_a_whole_issue_of_a_tracer_is_grouped_by_itself(issue: LagIssue, parts: tuple[str, ...]) -> None:
    own = replace(issue, fingerprint=fingerprint_of(issue.kind.value, parts[1:]))
    assert why_grouped(own, ()) == parts
    assert why_grouped(own, [STALL]) == parts
    assert why_grouped(issue, ()) == ()


def test_a_start_in_time_has_a_page_and_no_place_among_the_bugs(full: Store) -> None:
    full.put_issue(START_IN_TIME)
    report = report_of(full)
    assert START_IN_TIME.fingerprint not in as_shown(report)
    assert START_IN_TIME.id not in as_markdown(report)
    document = as_json.report_to_dict(report)
    assert START_IN_TIME.id in [one["id"] for one in document["issues"]]
    assert START_IN_TIME.fingerprint not in [one["fingerprint"] for one in document["issue_groups"]]
    text = as_shown(page_of(full, START_IN_TIME))
    assert "4.00 s, and it was within the limit" in text
    assert "not enough evidence" not in text  # nothing was wrong that has a cause


def test_an_issue_keeps_stacks_of_removed_stalls(store: Store) -> None:
    store.put([SESSION], [])
    kept = replace(BEHIND, stacks=STALL.stacks)
    store.put_issue(kept)
    text = as_shown(page_of(store, kept))
    assert "s1-1  no longer kept" in text
    assert "stack that held 390 ms" in text


@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=30)
@given(
    jank=any_of(Jank),
    late=any_of(InputLag),
    idle=any_of(IdleLag),
    start=any_of(Startup),
    slow=any_of(SlowMethod),
)
def test_any_issue_has_a_page(
    jank: Jank, late: InputLag, idle: IdleLag, start: Startup, slow: SlowMethod
) -> None:
    for issue in (jank, late, idle, start, slow):
        assert all(isinstance(line, str) and line for line in kind_of(issue).all_evidence(issue))


@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=30)
@given(any_of(ImportedFinding))
def test_any_finding_has_a_page(finding: ImportedFinding) -> None:
    shown = on_screen(Document(issue_blocks(finding, None)))
    assert not RAW.search(shown)
    assert finding.rule.value in shown


def hostile_rows(text: str) -> tuple[CallRow, ...]:
    frame = StackFrame(function=text, qualname=text, file=f"/{text}", line=1, in_app=True)
    return tuple(replace(row, frame=frame) for row in SLOW_METHOD.rows)


def hostile_place(text: str) -> FoundAt:
    lists = {"chain": (text,), "said": (text,)}
    return FoundAt(file=text, database=text, table=text, sql=text, owner=text, **lists)


@pytest.mark.parametrize("text", HOSTILE)
def test_no_name_reaches_a_reader_raw(store: Store, text: str) -> None:
    one = hostile_stall(text)
    hostile = {
        "title": text,
        "thread": text,
        "loop": text,
        "scene": text,
        "advice": text,
        "culprit": one.culprit,
        "stacks": one.stacks,
        "stalls": (one.id, text),
    }
    store.put([replace(SESSION, name=text)], [one])
    issues = [
        replace(BEHIND, **hostile),
        replace(INPUT_LAG, event=text, **hostile),
        replace(IDLE_LAG, handler=text, **hostile),
        replace(STARTUP, program=text, phases=(replace(STARTUP.phases[0], name=text),), **hostile),
        replace(SLOW_METHOD, rows=hostile_rows(text), **hostile),
        replace(FINDING, at=hostile_place(text), **hostile),
    ]
    for issue in issues:
        store.put_issue(issue)
    for issue in issues:
        report = page_of(store, issue)
        shown = [as_shown(report), as_markdown(report), as_json.render(report)]
        shown.append(as_shown(group_of(store, issue.fingerprint)))
        assert not any(RAW.search(page) for page in shown)
        assert "<script" not in shown[2]


def test_the_stacks_of_a_deadlock_say_whose_they_are():
    frames = (StackFrame(file="/app/shop.py", line=3, function="pay", qualname="pay", in_app=True),)
    waits = [
        TaskWait(task=one, waits_for="it", is_thread=one == "loads", frames=frames)
        for one in ("pay", "loads")
    ]
    issue = Deadlock(began_wall_ns=0, duration_ns=0, cycle=tuple(waits))
    parts = kind_of(issue).parts(issue)
    titles = ["".join(piece.text for piece in part.title) for part in parts]
    assert titles == ["task pay waits for it", "the thread loads waits for it"]


def test_what_was_found_while_it_went_on_ends_with_its_process():
    began = DEADLOCK.began_wall_ns
    runs = replace(SESSION, end=SessionEnd.RUNNING, ended_wall_ns=None)
    over = replace(SESSION, end=SessionEnd.EXIT, ended_wall_ns=began + 9 * S)
    lasted = {}
    for session in (runs, over):
        (row, *_) = circumstances(DEADLOCK, session).rows
        lasted[session.end] = "".join(piece.text for piece in row.pieces).partition(", ")[2]
    assert lasted[SessionEnd.RUNNING] == "found after 3.00 s"
    assert lasted[SessionEnd.EXIT] == "found after 3.00 s, its process ended after 9.00 s"
    assert (over_at(DEADLOCK, runs), over_at(DEADLOCK, over)) == (None, began + 9 * S)
    assert over_at(JANK, runs) == JANK.began_wall_ns + JANK.duration_ns


def test_the_json_says_when_an_issue_was_found_and_when_it_was_over(store: Store) -> None:
    ended = replace(SESSION, end=SessionEnd.EXIT, ended_wall_ns=DEADLOCK.began_wall_ns + 9 * S)
    store.put([ended], [DEADLOCK])
    (found,) = json.loads(as_json.render(page_of(store, DEADLOCK)))["issues"]
    seconds = [time_from_text(found[name]) - DEADLOCK.began_wall_ns for name in ("detected_at", "ended_at")]
    assert seconds == [3 * S, 9 * S]
