"""A third party's kind of issue: registered in one place, and seen everywhere."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.assembly.lock_waits import LockWait, LockWaitKind
from tests.building.issues import JANK
from tests.building.stalls import BEGAN, MS, SESSION, STALL, S
from tests.bundles.samples import NOW
from tests.notifications.test_words import told
from tests.report.schema_check import Place, problems
from tests.report.test_report import SCHEMA
from tests.reporters.test_console import Screen
from tests.ui.conftest import client_of, let_in

from loopcanary import registry
from loopcanary.assembly.explanations import why_grouped
from loopcanary.bundles.reading import read_bundle
from loopcanary.cli import main
from loopcanary.document.parts import Piece
from loopcanary.model import Cause, Stall
from loopcanary.model.issues.facts import UnknownIssue
from loopcanary.model.search import OTHERS, IssueQuery
from loopcanary.reporters.blocks import IN_FULL
from loopcanary.reporters.console import ConsoleReporter
from loopcanary.store import Retention, Store
from loopcanary.wire import Json, from_wire, to_wire

WAIT = LockWait(
    id="s1-lock-wait-1",
    session=SESSION.id,
    pid=SESSION.pid,
    fingerprint="lock-wait:0123456789ab",
    title="4.00 s of waiting for a lock",
    thread="MainThread",
    loop="asyncio",
    scene="checkout",
    began_wall_ns=BEGAN + 60 * S,
    duration_ns=4 * S,
    cause=Cause.LOCK,
    culprit=STALL.culprit,
    advice="Hold it for less.",
    lock="orders_lock",
    waited_ns=3_900 * MS,
    holders=("Exporter.flush",),
)


@pytest.fixture(autouse=True)
def _plugged_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry.REGISTRY, "_own", {})
    registry.REGISTRY.add(registry.KINDS, "lock-wait", LockWaitKind)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "store"


@pytest.fixture
def store(folder: Path) -> Iterator[Store]:
    made = Store(folder, retention=Retention(age_ns=1 << 62))
    made.put([SESSION], [STALL, JANK, WAIT])
    yield made
    made.close()


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main([*arguments, "--store", "store"]) == 0
    return capsys.readouterr().out


def test_the_store_keeps_finds_and_groups_it(store: Store):
    assert store.reader.issue(WAIT.id) == WAIT
    query = IssueQuery(kind=LockWait.kind, words=("exporter.FLUSH",))
    assert store.reader.issues(query) == [WAIT]
    [group] = store.reader.groups(query)
    assert (group.kind, group.title, group.max_ns) == (LockWait.kind, WAIT.title, WAIT.duration_ns)
    assert {one.fingerprint for one in store.reader.group_sums(OTHERS)} == {
        JANK.fingerprint,
        WAIT.fingerprint,
    }


@pytest.mark.usefixtures("store")
def test_reports_of_every_form_have_it(capsys: pytest.CaptureFixture[str]):
    assert "lock waits" in said(capsys, "report")
    for form in ("text", "markdown"):
        assert WAIT.title in said(capsys, "report", "--format", form)
        shown = said(capsys, "show", WAIT.fingerprint, "--format", form)
        for words in ("orders_lock", "3900 ms", "Exporter.flush", "Hold it for less"):
            assert words in shown
    document = json.loads(said(capsys, "report", "--format", "json"))
    [issue] = [one for one in document["issues"] if one["kind"] == "lock-wait"]
    assert (issue["lock"], issue["waited_ms"], issue["holders"]) == ("orders_lock", 3_900, ["Exporter.flush"])
    assert issue["evidence"] == ["waited 3900 ms for orders_lock"]
    assert [one["kind"] for one in document["issue_groups"]] == ["jank", "lock-wait"]
    assert WAIT.title in said(capsys, "report", "--format", "html")


@pytest.mark.usefixtures("store")
def test_its_report_fits_the_schema_and_none_of_ours(capsys: pytest.CaptureFixture[str]):
    document = json.loads(said(capsys, "report", "--format", "json"))
    assert list(problems(document, SCHEMA, Place(SCHEMA))) == []
    jank, wait = sorted(document["issues"], key=lambda one: one["kind"])
    for broken in ({**wait, "kind": "jank"}, {**wait, "pid": "1"}, {**jank, "frames": None}, {"kind": "new"}):
        assert list(problems({**document, "issues": [broken]}, SCHEMA, Place(SCHEMA)))


@pytest.mark.parametrize("form", ["github", "sarif", "junit"])
def test_ci_systems_get_it_with_its_line(
    store: Store, tmp_path: Path, form: str, capsys: pytest.CaptureFixture[str]
):
    source = tmp_path / "orders.py"
    source.touch()
    assert WAIT.culprit
    store.put_issue(replace(WAIT, culprit=replace(WAIT.culprit, file=str(source))))
    out = said(capsys, "report", "--format", form)
    for text in (WAIT.title, "1 lock wait, 4.00 s in all", "Hold it for less", "orders.py"):
        assert text in out
    assert ("lock-wait/lock" in out) is (form != "github")  # its annotations have no rules


def test_pages_list_it_and_show_its_bug_and_itself(store: Store):
    client = let_in(client_of(store))
    for path in ("/groups?kind=lock-wait", "/groups?kind=other"):
        assert WAIT.title in client.get(path).text
    assert "lock wait</option>" in client.get("/groups").text
    bug = client.get("/group", params={"f": WAIT.fingerprint}).text
    issue = client.get("/issue", params={"id": WAIT.id}).text
    for text in (bug, issue):
        assert "Exporter.flush" in text
        assert "3900 ms" in text


@pytest.mark.usefixtures("store")
def test_it_is_exported(capsys: pytest.CaptureFixture[str]):
    [line] = said(capsys, "export", "--format", "jsonl", "--kind", "lock-wait").splitlines()
    assert (json.loads(line)["lock"], json.loads(line)["program"]) == ("orders_lock", "shop")
    assert main(["export", "--format", "csv", "--kind", "lock-wait", "--store", "store"]) == 2


@pytest.mark.parametrize("redact", [[], ["--redact", "names"]], ids=["whole", "without names"])
def test_a_bundle_takes_it_along(
    store: Store, tmp_path: Path, redact: list[str], capsys: pytest.CaptureFixture[str]
):
    bundle = tmp_path / "some.zip"
    said(capsys, "bundle", "--output", str(bundle), *redact)
    other = Store(tmp_path / "other", retention=Retention(age_ns=1 << 62))
    other.take_in(lambda intake: read_bundle(bundle, intake, now_wall_ns=NOW) and None)
    found = other.reader.issue(WAIT.id)
    assert isinstance(found, LockWait)
    assert found.waited_ns == WAIT.waited_ns
    if redact:
        assert "orders" not in found.lock
        assert "flush" not in found.holders[0]
        assert found.advice is None
    else:
        assert found == WAIT
    other.close()
    assert store.reader.issue(WAIT.id) == WAIT


def test_it_is_notified_by_its_name():
    assert told(WAIT).title == "lock wait: 4.00 s of waiting for a lock"


def test_its_kind_is_a_setting(folder: Path, monkeypatch: pytest.MonkeyPatch):
    from loopcanary.config import load

    monkeypatch.setenv("LOOPCANARY_NOTIFY_KINDS", "lock-wait")
    assert load(store=folder).notify_kinds == ("lock-wait",)


NOT_SHOWN = "1 issue of kind lock-wait is not shown: no installed plugin reads it"


@pytest.fixture
def unplugged(store: Store, monkeypatch: pytest.MonkeyPatch) -> Store:
    """The store, where the plugin is not."""
    monkeypatch.setattr(registry.REGISTRY, "_own", {})
    return store


def test_without_the_plugin_others_are_still_read(unplugged: Store):
    assert unplugged.reader.totals(OTHERS).issues == 1
    assert unplugged.maintenance.unreadable() == [NOT_SHOWN]
    unplugged.put_issue(replace(JANK, id="s1-jank-2"))
    assert len(unplugged.reader.issues(IssueQuery(kind=JANK.kind))) == 2
    for found in (unplugged.reader.issues(OTHERS), list(unplugged.reader.each(OTHERS))):
        assert {one.kind for one in found} == {JANK.kind}
    assert [one.fingerprint for one in unplugged.reader.groups(OTHERS, 1)] == [JANK.fingerprint]


@pytest.mark.usefixtures("unplugged")
@pytest.mark.parametrize("form", ["text", "markdown", "json", "html"])
def test_reports_say_what_they_cannot_show(form: str, capsys: pytest.CaptureFixture[str]):
    assert main(["report", "--store", "store", "--format", form]) == 0
    out, err = capsys.readouterr()
    assert STALL.title in out or STALL.fingerprint in out
    assert WAIT.title not in out
    assert err == f"loopcanary: {NOT_SHOWN}\n"


@pytest.mark.parametrize(
    "target",
    ["loopcanary_nowhere:Kind", LockWaitKind(), LockWait],
    ids=["that is not there", "an object", "another class"],
)
def test_a_plugin_that_fails_hides_nothing_else(unplugged: Store, target: object):
    registry.REGISTRY.add(registry.KINDS, "lock-wait", target)
    assert [one.kind for one in unplugged.reader.issues(OTHERS)] == [JANK.kind]
    assert unplugged.maintenance.unreadable() == [
        "1 issue of kind lock-wait is not shown: its plugin cannot be loaded"
    ]


@pytest.mark.usefixtures("unplugged")
@pytest.mark.parametrize("which", [WAIT.id, WAIT.fingerprint])
def test_show_says_that_the_plugin_is_missing(which: str, capsys: pytest.CaptureFixture[str]):
    assert main(["show", which, "--store", "store"]) != 0
    out, err = capsys.readouterr()
    assert (out, len(err.splitlines())) == ("", 2)
    assert "lock-wait" in err.splitlines()[-1]


@pytest.mark.usefixtures("unplugged")
def test_a_bundle_leaves_out_what_it_cannot_read(capsys: pytest.CaptureFixture[str]):
    assert main(["bundle", "--store", "store", "-o", "some.zip"]) == 0
    out, err = capsys.readouterr()
    assert "1 stall and 1 other issue" in out
    assert err == f"loopcanary: {NOT_SHOWN}\n"


def test_pages_without_the_plugin_list_the_others(unplugged: Store):
    answer = let_in(client_of(unplugged)).get("/groups?kind=other")
    assert answer.status_code == 200
    assert JANK.title in answer.text
    assert WAIT.title not in answer.text


LOCK_ORDER = UnknownIssue(
    id="s1-lock-order-1",
    session=SESSION.id,
    pid=SESSION.pid,
    fingerprint="lock-order:0123456789ab",
    title="2 locks are acquired in both orders: Lock 'Bank.accounts', Lock 'Bank.ledger'",
    thread="teller",
    loop="thread",
    scene=None,
    began_wall_ns=BEGAN + 61 * S,
    duration_ns=0,
    record={"kind": "lock-order", "id": "s1-lock-order-1", "orders": [{"thread": "teller"}]},
)
"""Of a kind that loopcanary had."""


@pytest.mark.parametrize("form", ["text", "markdown", "json", "html"])
def test_stored_issues_of_a_kind_that_was_taken_out_are_counted(
    store: Store, form: str, capsys: pytest.CaptureFixture[str]
):
    store.put_issue(LOCK_ORDER)
    assert main(["report", "--store", "store", "--format", form]) == 0
    out, err = capsys.readouterr()
    assert (STALL.fingerprint in out or STALL.title in out, LOCK_ORDER.title in out) == (True, False)
    assert err == "loopcanary: 1 issue of kind lock-order is not shown: no installed plugin reads it\n"
    page = let_in(client_of(store)).get("/groups?kind=other")
    assert (page.status_code, JANK.title in page.text) == (200, True)


class EveryWord(LockWaitKind):
    """With every word that a stall has."""

    noun = "wait"

    def lead(self, issue: LockWait) -> Piece:
        return Piece(f"a wait of {issue.waited_ns // MS} ms")

    def notice(self, issue: LockWait) -> tuple[str, str]:
        return f"waited for {issue.lock}", "a lock"

    def grouped(self, issue: LockWait, stalls: Sequence[Stall]) -> tuple[str, ...]:
        del stalls
        return (f"of={issue.lock}",)

    def packed(self, issue: LockWait) -> Json:
        return {**to_wire(issue), "lock": issue.lock[::-1]}

    def unpacked(self, document: Json) -> LockWait:
        return from_wire(LockWait, {**document, "lock": document["lock"][::-1]})


@pytest.fixture
def in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry.REGISTRY, "_own", {})
    registry.REGISTRY.add(registry.KINDS, "lock-wait", EveryWord)
    monkeypatch.setitem(IN_FULL, "lock-wait", lambda issue, *_: f"{issue.lock} was held\n")


@pytest.mark.usefixtures("in_full")
def test_it_may_have_every_word_that_a_stall_has(folder: Path, capsys: pytest.CaptureFixture[str]):
    assert told(WAIT).lines[0] == "a lock"
    assert told(WAIT).title == "waited for orders_lock"
    assert why_grouped(WAIT, ()) == ("of=orders_lock",)
    made = Store(folder, retention=Retention(age_ns=1 << 62))
    made.put([SESSION], [WAIT])
    assert made.reader.issue(WAIT.id) == WAIT
    made.close()
    with sqlite3.connect(folder / "loopcanary.db") as database:
        [(payload,)] = database.execute("SELECT payload FROM payloads")
    database.close()
    assert "kcol_sredro" in payload
    shown = said(capsys, "show", WAIT.fingerprint)
    assert "a wait of 3900 ms" in shown
    assert "4.00 s in 1 wait" in shown


@pytest.mark.usefixtures("in_full")
def test_its_bugs_are_counted_on_the_console():
    screen = Screen()
    console = ConsoleReporter(terminal=screen, announce_clean=False)
    for number in range(2):
        console.report(replace(WAIT, id=f"s1-{number}"), number)
    console.close(SESSION, ())
    first, last = screen.blocks[0], screen.blocks[-1]
    assert first == "orders_lock was held\n"
    assert "8.00 s" in last
