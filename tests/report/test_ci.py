"""Bugs for CI systems: annotations, SARIF, JUnit; and where a file lies in the repository."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from tests.building.issues import JANK
from tests.building.stalls import (
    BEGAN,
    GETS,
    HOSTILE,
    KILLED,
    SESSION,
    SOURCE,
    STALL,
    S,
    hostile_stall,
    stall,
)

from loopcanary.model import Cause, Severity
from loopcanary.model.search import IssueQuery
from loopcanary.report.ci import formats
from loopcanary.report.ci.bugs import Bug, Repository, bugs
from loopcanary.report.model import build
from loopcanary.store import Store

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")

FORMS = ("github", "sarif", "junit")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository where the program's files lie in another folder than in the container it ran in."""
    root = tmp_path / "repository"
    (root / "services" / "shop").mkdir(parents=True)
    lines = [""] * 86 + [f"        {SOURCE}"]
    (root / "services" / "shop" / "orders.py").write_text("\n".join(lines))
    (root / "services" / "shop" / "web.py").touch()
    subprocess.run(["git", "init", "-q", root], check=True)
    subprocess.run(["git", "-C", root, "add", "."], check=True)
    return root


def found(store: Store, root: Path, known: tuple[str, ...] = ()) -> list[Bug]:
    report = build(store.reader, IssueQuery(), limit=0, now_wall_ns=BEGAN + S)
    return bugs(report, Repository(root), known)


def rendered(form: str, found: list[Bug], **options: Any) -> str:
    return formats.render(form, found, **{"version": "1.2", "has_baseline": False, **options})


# ---- bugs -------------------------------------------------------------------------------------------


def test_a_bug_is_at_its_line_in_the_repository(store: Store, checkout: Path) -> None:
    store.put([SESSION], [STALL, replace(STALL, id="s1-2", duration_ns=2 * S, severity=Severity.HANG)])
    [bug] = found(store, checkout)
    assert bug.spot is not None
    assert (bug.spot.path, bug.spot.line) == ("services/shop/orders.py", 87)
    # Columns of the file, not of the line without its indentation.
    assert (bug.spot.column, bug.spot.end_column) == (9 + SOURCE.index("json"), 8 + SOURCE.index("]"))
    assert [(one.path, one.line) for one in bug.steps] == [
        ("services/shop/web.py", 40),
        ("services/shop/web.py", 12),
        ("services/shop/orders.py", 87),
    ]
    assert (bug.rule, bug.severity, bug.count, bug.max_ns) == ("stall/native-cpu", Severity.HANG, 2, 2 * S)


def test_a_bug_says_what_its_longest_stall_waited_for(store: Store, checkout: Path) -> None:
    """The rule is that of other bugs, too."""
    store.put([SESSION], [stall(cause=Cause.LOCK, stacks=(GETS,))])
    [bug] = found(store, checkout)
    assert ": waiting for an item in a queue (lock)." in bug.details
    assert bug.rule_words == "stall: waiting for a lock"


def test_columns_of_a_line_that_has_changed_are_not_said(store: Store, checkout: Path) -> None:
    store.put([SESSION], [STALL])
    (checkout / "services" / "shop" / "orders.py").write_text("\n" * 90)
    [bug] = found(store, checkout)
    assert bug.spot is not None
    assert (bug.spot.line, bug.spot.column, bug.spot.end_column) == (87, 0, 0)


def test_new_bugs_come_first(store: Store, checkout: Path) -> None:
    other = stall(id="s1-9", fingerprint="1:beef", duration_ns=S)
    store.put([SESSION], [STALL, other])
    store.put_issue(JANK)
    assert {one.fingerprint for one in found(store, checkout)} == {
        "1:beef",
        STALL.fingerprint,
        JANK.fingerprint,
    }
    after = found(store, checkout, ("1:beef",))
    assert [one.is_known for one in after] == [False, False, True]


def test_a_library_is_never_taken_for_a_file_of_the_repository(store: Store, checkout: Path) -> None:
    foreign = replace(STALL.culprit, in_app=False) if STALL.culprit else None
    frames = tuple(replace(one, in_app=False) for one in STALL.stacks[0].frames)
    stacks = (replace(STALL.stacks[0], frames=frames),)
    store.put([SESSION], [replace(STALL, culprit=foreign, stacks=stacks)])
    [bug] = found(store, checkout)
    assert (bug.spot, bug.steps) == (None, ())


# ---- places ---------------------------------------------------------------------------------------------


def test_a_file_is_looked_for_by_the_end_of_its_path(checkout: Path) -> None:
    repository = Repository(checkout)
    assert repository.place(str(checkout / "services/shop/web.py")) == "services/shop/web.py"
    assert repository.place("services/shop/web.py") == "services/shop/web.py"
    assert repository.place("/app/shop/web.py") == "services/shop/web.py"
    assert repository.place("C:\\app\\shop\\web.py") == "services/shop/web.py"
    assert repository.place("/app/shop/gone.py") is None
    assert repository.place("<string>") is None
    assert repository.place("") is None


def test_of_two_files_alike_neither_is_named(checkout: Path) -> None:
    (checkout / "tools").mkdir()
    (checkout / "tools" / "web.py").touch()
    subprocess.run(["git", "-C", checkout, "add", "."], check=True)
    repository = Repository(checkout)
    assert repository.place("/app/web.py") is None
    assert repository.place("/app/tools/web.py") == "tools/web.py"


def test_without_git_only_files_below_the_root_are_found(tmp_path: Path) -> None:
    (tmp_path / "app.py").touch()
    repository = Repository(tmp_path)
    assert repository.place(str(tmp_path / "app.py")) == "app.py"
    assert repository.place("/elsewhere/app.py") is None


def test_the_root_is_where_the_ci_system_says(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = checkout / "services" / "shop"
    assert Repository.around(inner).root == checkout
    monkeypatch.setenv("GITHUB_WORKSPACE", str(checkout / "services"))
    assert Repository.around(inner).root == checkout / "services"
    monkeypatch.setenv("GITHUB_WORKSPACE", "/elsewhere")
    assert Repository.around(inner).root == checkout


# ---- formats --------------------------------------------------------------------------------------------


def test_annotations_of_github(store: Store, checkout: Path) -> None:
    store.put([SESSION], [STALL, KILLED])
    text = rendered("github", found(store, checkout))
    [hang, other] = sorted(text.splitlines(), key=lambda line: not line.startswith("::error"))
    assert hang.startswith("::error ")
    assert other.startswith(
        "::warning file=services/shop/orders.py,line=87,endLine=87,col=39,endColumn=53,"
        "title=json.loads(body) in load_orders (orders.py%3A87)::1 stall, 412 ms in all"
    )
    known = rendered("github", found(store, checkout, (STALL.fingerprint, KILLED.fingerprint)))
    assert {line.split()[0] for line in known.splitlines()} == {"::notice"}


def test_sarif_names_rules_places_and_the_way_there(store: Store, checkout: Path) -> None:
    store.put([SESSION], [STALL, KILLED])
    log = json.loads(rendered("sarif", found(store, checkout, (KILLED.fingerprint,)), has_baseline=True))
    assert log["version"] == "2.1.0"
    [run] = log["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert [rules[result["ruleIndex"]] for result in run["results"]] == [
        one["ruleId"] for one in run["results"]
    ]
    [one, killed] = run["results"]
    assert (one["baselineState"], one["level"]) == ("new", "warning")
    assert (killed["baselineState"], killed["level"]) == ("unchanged", "error")
    assert one["partialFingerprints"] == {"loopcanaryBug/v1": STALL.fingerprint}
    [location] = one["locations"]
    assert location["physicalLocation"] == {
        "artifactLocation": {"uri": "services/shop/orders.py", "uriBaseId": "SRCROOT"},
        "region": {"startLine": 87, "startColumn": 39, "endColumn": 54},
    }
    [flow] = one["codeFlows"]
    [thread] = flow["threadFlows"]
    assert len(thread["locations"]) == 3
    assert "baselineState" not in rendered("sarif", found(store, checkout))


def test_of_junits_cases_known_bugs_pass(store: Store, checkout: Path) -> None:
    store.put([SESSION], [STALL, KILLED])
    root = ET.fromstring(rendered("junit", found(store, checkout, (KILLED.fingerprint,))))
    [suite] = root
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    [new, known] = suite
    failure = new.find("failure")
    assert failure is not None
    assert "services/shop/orders.py:87 in load_orders" in (failure.text or "")
    assert known.find("failure") is None
    named = {one.get("name"): one.get("value") for one in new.iter("property")}
    assert named["loopcanary.fingerprint"] == STALL.fingerprint


@pytest.mark.parametrize("form", FORMS)
def test_no_name_of_the_program_breaks_a_format(store: Store, checkout: Path, form: str) -> None:
    store.put([SESSION], [hostile_stall(text, number) for number, text in enumerate(HOSTILE)])
    text = rendered(form, found(store, checkout))
    assert "\x1b" not in text
    if form == "github":
        lines = text.splitlines()
        assert len(lines) == len(HOSTILE)
        assert all(line.startswith(("::warning ", "::error ")) for line in lines)
    elif form == "junit":
        assert len(ET.fromstring(text)[0]) == len(HOSTILE)
    else:
        json.loads(text)


@pytest.mark.parametrize("form", FORMS)
def test_where_nothing_was_found_the_file_is_valid(store: Store, checkout: Path, form: str) -> None:
    text = rendered(form, found(store, checkout))
    if form == "sarif":
        json.loads(text)
    elif form == "junit":
        assert ET.fromstring(text).get("tests") == "0"
    else:
        assert text == ""
