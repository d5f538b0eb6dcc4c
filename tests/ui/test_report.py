"""`loopcanary report --format html`: one file, whatever the store holds."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from tests.building.issues import DEADLOCK, ISSUES, TRACES
from tests.building.stalls import BEGAN, HOSTILE, KILLED, SESSION, STALL, S, hostile_stall, session, stall
from tests.ui.conftest import TOOLS

from loopcanary.cli import main
from loopcanary.model import Cause, SessionEnd
from loopcanary.model.search import IssueQuery, Remark
from loopcanary.store import Store
from loopcanary.ui.document import bundle, document
from loopcanary.ui.pages.report import ReportPage, query_words, report_page

NOW = BEGAN + 600 * S
ALL = IssueQuery()
_VOID = frozenset({"meta", "link", "input", "br", "hr", "img"})


class Parsed(HTMLParser):
    """What a browser finds in the file."""

    def __init__(self, document: bytes) -> None:
        super().__init__(convert_charrefs=True)
        self.wrong: list[str] = []
        self.contents: dict[str, list[str]] = {"script": [], "style": [], "json": []}
        self.addresses: list[str] = []
        self.ids: list[str] = []
        self.fills: set[str] = set()
        self.policy = ""
        self.text = ""
        self._open: list[str] = []
        self._into: list[str] | None = None
        self.feed(document.decode("utf-8"))
        self.close()
        self.wrong += [f"<{tag}> is not closed" for tag in self._open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.wrong += [f"<{tag} {name}>" for name in given if name.startswith("on") or name == "style"]
        self.addresses += [given[name] for name in ("href", "src", "action", "formaction") if name in given]
        self.ids += [given["id"]] if "id" in given else []
        self.fills |= set(re.findall(r"url\(#(.*)\)", given.get("fill", "")))
        if given.get("http-equiv") == "Content-Security-Policy":
            self.policy = given["content"]
        if tag not in _VOID:
            self._open.append(tag)
        if tag in ("script", "style"):
            self._into = self.contents["json" if given.get("type") == "application/json" else tag]
            self._into.append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open.pop() != tag:
            self.wrong.append(f"</{tag}> out of place")
        self._into = None

    def handle_data(self, data: str) -> None:
        if self._into is not None:
            self._into[-1] += data
        else:
            self.text += data


def page_of(store: Store, query: IssueQuery = ALL, limit: int = 20) -> ReportPage:
    return report_page(store.reader, query, TOOLS, limit=limit, now_wall_ns=NOW)


def parsed(store: Store, query: IssueQuery = ALL, limit: int = 20) -> Parsed:
    return sound(document(page_of(store, query, limit), "/srv"))


def sound(file: bytes) -> Parsed:
    """The file, which is sound HTML, runs nothing but ours, and asks nobody for anything."""
    found = Parsed(file)
    assert found.wrong == []
    assert len(set(found.ids)) == len(found.ids)
    assert found.fills <= set(found.ids)
    assert found.contents["script"] == [str(script) for script in bundle().scripts]
    assert found.contents["style"] == [str(bundle().style)]
    for text in found.contents["json"]:
        json.loads(text)
    inside = {f"#{name}" for name in found.ids}
    assert [one for one in found.addresses if one not in inside and not one.startswith("data:image/")] == []
    return found


def test_it_says_which_line_why_and_what_to_do(filled: Store):
    assert b"<bdi>shop</bdi>" in document(page_of(filled), "")
    assert b" by loopcanary 1.2.3</span>" in document(page_of(filled), "", "loopcanary 1.2.3")
    found = parsed(filled)
    for words in (
        "Biggest bug: 85 % of all stalled time",
        "lock.acquire() in flush (cache.py:12)",
        "Waiting for a lock",
        "asyncio.to_thread(json.loads, body)",
        "shop/orders.py:87",
        "on a CPU for 92 % of it",
        "47 of 60 fps in boss",
        "1 killed",
    ):
        assert words in found.text, words


def test_bugs_are_ranked_with_graph_and_timeline(filled: Store):
    page = page_of(filled)
    assert [bug.group.fingerprint for bug in page.bugs] == ["1:dead", "1:f00d"]
    assert [bug.row.rank for bug in page.bugs] == [1, 2]
    for bug in page.bugs:
        assert bug.flame.tree is not None
        assert bug.timeline is not None
        assert bug.flame.stalls == bug.group.count
    assert [one.id for one in page.alarms] == [KILLED.id]
    assert all(bug.earlier is not None for bug in page.bugs)
    assert parsed(filled).text.count("What ran in the") == len(page.bugs)


def test_it_runs_only_what_its_policy_names():
    policy = dict(part.split(" ", 1) for part in bundle().content_policy.split("; "))
    hashed = [
        f"'sha256-{base64.b64encode(hashlib.sha256(str(script).encode()).digest()).decode()}'"
        for script in bundle().scripts
    ]
    assert policy["script-src"] == " ".join(hashed)
    assert (policy["default-src"], policy["img-src"], policy["form-action"]) == ("'none'", "data:", "'none'")
    assert "unsafe" not in bundle().content_policy


def test_the_policy_comes_before_what_it_is_about(filled: Store):
    text = document(page_of(filled), "").decode()
    assert 0 < text.index("Content-Security-Policy") < text.index("<style>") < text.index("<script>")
    assert parsed(filled).policy == bundle().content_policy


def test_without_data_it_is_small(store: Store):
    assert len(document(page_of(store), "")) < 1_500_000
    assert "Nothing was watched yet" in parsed(store).text


def test_a_deadlock_without_a_stall_comes_first(store: Store):
    store.put([SESSION], [DEADLOCK])
    text = " ".join(parsed(store).text.split())
    assert "What blocked the loop No stall was recorded, but deadlocks deadlock: 2 tasks wait" in text


def test_libraries_come_with_their_licences(store: Store):
    text = parsed(store).text
    for words in ("Leon Sorokin", "Apache License", "Mike Bostock"):
        assert words in text


def test_no_string_of_a_program_becomes_markup(store: Store):
    """Each hostile string in every field of a stall, a session and issues of all kinds."""
    for number, text in enumerate(HOSTILE):
        ran = f"h{number}"
        store.put(
            [session(id=ran, name=text, host=text, version=text, python=text, engine=text, command=text)],
            [hostile_stall(text, number)],
        )
        scene = dataclasses.replace(TRACES.frames[0], scene=text)
        store.put_traces(ran, dataclasses.replace(TRACES, frames=(scene,)))
        store.remark(f"h{number}", Remark(ignored=True, note=text))
        for issue in ISSUES:
            named = dict.fromkeys(("title", "thread", "loop", "scene", "advice"), text)
            culprit = hostile_stall(text).culprit
            store.put_issue(
                dataclasses.replace(
                    issue, id=f"{ran}-{issue.kind.value}", fingerprint=text, culprit=culprit, **named
                )
            )
    found = parsed(store, limit=0)
    assert found.text.count("</script><script>alert(1)</script><!--") > 10
    assert not set(found.text) & set("\x00\x1b\u202e\u2066\u200f\u2069\x7f\x9b")
    for words in HOSTILE:
        assert not set("".join(query_words(IssueQuery(words=(words,), session=words)))) & set(
            "\x00\x1b\u202e"
        )


def test_what_has_no_room_is_said(store: Store):
    ended = session(id="s2", end=SessionEnd.EXIT, started_wall_ns=BEGAN + 9 * S)
    store.put(
        [SESSION, ended],
        [stall(id=f"s1-{n}", fingerprint=f"1:{n:04}", duration_ns=S - n) for n in range(30)],
    )
    page = page_of(store, limit=1)
    assert len(page.bugs) == 1
    left = page.left_out
    assert (left.bugs, left.stalls, left.sessions, left.killed) == (29, 29, 1, 1)
    assert left.total_ns == page.total_ns - (S - 0)
    words = parsed(store, limit=1).text
    assert "Left out: 29 more bugs" in words
    assert "and 1 run before, 1 killed" in words
    assert len(page_of(store, limit=0).bugs) == 30


def test_the_graph_of_a_bug_keeps_its_widest_frames(store: Store):
    """However many different stacks its stalls have, the file does not grow with them."""
    frame = STALL.stacks[0].frames[3]
    stacks = tuple(
        dataclasses.replace(
            STALL.stacks[0],
            weight_ns=1_000 + number,
            frames=tuple(dataclasses.replace(frame, qualname=f"f{number}_{depth}") for depth in range(100)),
        )
        for number in range(50)
    )
    store.put([SESSION], [stall(stacks=stacks, timeline=None)])
    [bug] = page_of(store).bugs
    assert bug.flame.left_out == 1 + 50 * 100 - 1_000
    assert "4,001 of the narrowest frames are left out" in parsed(store).text


def test_only_what_was_asked_for_is_in_it(filled: Store):
    page = page_of(filled, IssueQuery(causes=frozenset({Cause.LOCK}), words=("lock",)))
    assert [bug.group.fingerprint for bug in page.bugs] == ["1:dead"]
    assert page.chosen == ("cause lock", "text lock")
    assert page.chart is not None
    assert sum(one.total_ns for one in page.chart.causes) == page.total_ns == KILLED.duration_ns


def test_latest_stalls_and_graph_are_of_the_chosen_time(store: Store):
    later = stall(id="s1-9", began_wall_ns=BEGAN + 100 * S)
    store.put([SESSION], [STALL, later])
    [bug] = page_of(store, IssueQuery(since_wall_ns=BEGAN + 50 * S)).bugs
    assert [one.id for one in bug.latest] == ["s1-9"]
    assert bug.flame.stalls == 1


# ---- the command -----------------------------------------------------------------------------


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, filled: Store) -> Path:
    """The folder of a store of last year, which is kept."""
    filled.close()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOOPCANARY_RETENTION", "36500d")
    return tmp_path


def test_the_command_writes_a_file_that_others_cannot_read(place: Path):
    assert main(["report", "--store", "store", "--format", "html", "-o", "report.html"]) == 0
    assert (place / "report.html").stat().st_mode & 0o777 == 0o600
    assert "lock.acquire() in flush" in Parsed((place / "report.html").read_bytes()).text


@pytest.mark.usefixtures("place")
def test_the_command_writes_to_stdout(capfdbinary: pytest.CaptureFixture[bytes]):
    assert main(["report", "--store", "store", "--format", "html", "--cause", "dns"]) == 1
    assert "No stall matches" not in capfdbinary.readouterr().err.decode()
    assert main(["report", "--store", "store", "--format", "html", "--text", "flush"]) == 0
    assert capfdbinary.readouterr().out.startswith(b"<!doctype html>")


@pytest.mark.usefixtures("place")
def test_without_jinja2_one_line_names_the_extra(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    for name in [name for name in sys.modules if name.startswith("loopcanary.ui")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    for command in (["report", "--store", "store"], ["methods", "1"]):
        assert main([*command, "--format", "html", "-o", "report.html"]) == 2
        assert capsys.readouterr().err == (
            'loopcanary: --format html needs jinja2: pip install "loopcanary[ui]"\n'
        )
    assert not Path("report.html").exists()


@pytest.mark.parametrize("form", ["text", "json", "markdown"])
def test_other_forms_are_written_to_a_file_too(place: Path, form: str, capsys: pytest.CaptureFixture[str]):
    assert main(["report", "--store", "store", "--format", form, "-o", "report"]) == 0
    assert capsys.readouterr().out == ""
    assert "orders.py" in (place / "report").read_text(encoding="utf-8")
