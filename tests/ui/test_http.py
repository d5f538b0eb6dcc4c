from __future__ import annotations

import json
import platform
import re
from collections.abc import Iterator
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import anyio
import pytest
from starlette.testclient import TestClient
from tests.building.issues import DEADLOCK, FINDING, ISSUES, JANK, REQUESTS, SLOW_METHOD, STARTUP, TRACES
from tests.building.stalls import BEGAN, HOSTILE, KILLED, MS, SESSION, STALL, S, hostile_stall, session, stall
from tests.ui.conftest import HOST, TOOLS, client_of, let_in, site_of

from loopcanary.model import (
    Cause,
    Contributor,
    Culprit,
    Holder,
    LateFrame,
    Portion,
    SessionEnd,
    Severity,
    StallState,
    ThreadView,
    TraceFigures,
)
from loopcanary.model.search import OTHERS, STALLS, IssueQuery, Remark
from loopcanary.model.session import TaskSurvey, WaitingTasks
from loopcanary.model.stack_frame import StackFrame
from loopcanary.registry import KINDS, REGISTRY
from loopcanary.store import Retention, Store
from loopcanary.ui.app import application
from loopcanary.ui.document import document
from loopcanary.ui.live import Sight
from loopcanary.ui.pages.report import report_page
from loopcanary.ui.rendering import url

PAGES = (
    "/",
    "/groups",
    "/sessions",
    "/changes",
    "/frames",
    "/startup",
    "/methods",
    "/groups?kind=other",
    "/doctor",
)
_KINDS = [one.name for one in REGISTRY.of(KINDS)]
ORIGIN = {"origin": f"http://{HOST}"}
_VOID = frozenset({"meta", "link", "input", "br", "img", "hr"})


class Checked(HTMLParser):
    """What a browser would find in a page, and what a strict policy would forbid there."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.wrong: list[str] = []
        self.scripts: list[str] = []
        self.addresses: list[str] = []
        self.open: list[str] = []
        self.ids: list[str] = []
        self.fills: set[str] = set()
        self._script: str | None = None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.wrong += [f"<{tag} {name}>" for name in given if name.startswith("on") or name == "style"]
        self.addresses += [given[name] or "" for name in ("href", "src", "action") if name in given]
        self.ids += [given["id"] or ""] if "id" in given else []
        self.fills |= set(re.findall(r"url\(#(.*)\)", given.get("fill") or ""))
        if tag == "style" or (
            tag == "script" and "src" not in given and given.get("type") != "application/json"
        ):
            self.wrong.append(f"<{tag}> within the page")
        if tag not in _VOID:
            self.open.append(tag)
        if tag == "script" and "src" not in given:
            self._script = ""

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"</{tag}> out of place")
        if tag == "script" and self._script is not None:
            self.scripts.append(self._script)
            self._script = None

    def handle_data(self, data: str) -> None:
        if self._script is not None:
            self._script += data


def checked(text: str) -> Checked:
    page = Checked(text)
    assert page.wrong == []
    assert page.open == []
    assert len(set(page.ids)) == len(page.ids)
    assert page.fills <= set(page.ids)
    for script in page.scripts:
        json.loads(script)
    foreign = [
        one for one in page.addresses if not re.match(r"[/#?]|vscode://file/", one) or one.startswith("//")
    ]
    assert foreign == []
    return page


def all_pages(client: TestClient, store: Store) -> dict[str, str]:
    """Every page that there is of what is in the store."""
    paths = list(PAGES)
    paths += [f"/groups?kind={kind}" for kind in (*_KINDS, "</script>")]
    paths += [url("/changes", program=mark.name) for mark in store.reader.session_marks(IssueQuery())]
    answers = {path: client.get(path) for path in paths}
    for group in store.reader.groups(IssueQuery()):
        answers[f"group {group.fingerprint}"] = client.get("/group", params={"f": group.fingerprint})
        answers[f"delete {group.fingerprint}"] = client.get("/group/delete", params={"f": group.fingerprint})
    for one in store.reader.issues(STALLS):
        answers[f"stall {one.id}"] = client.get("/issue", params={"id": one.id})
    for issue in store.reader.issues(OTHERS):
        answers[f"issue {issue.id}"] = client.get("/issue", params={"id": issue.id})
    for ran in store.reader.sessions(IssueQuery()):
        answers[f"session {ran.id}"] = client.get("/session", params={"id": ran.id})
    assert {path: answer.status_code for path, answer in answers.items() if answer.status_code != 200} == {}
    return {path: answer.text for path, answer in answers.items()}


def test_every_page_is_whole_and_keeps_to_the_policy(client: TestClient, filled: Store):
    for text in all_pages(client, filled).values():
        checked(text)


def test_every_wait_for_the_gil_is_hatched_alike(store: Store):
    assert STALL.timeline is not None
    wait = STALL.timeline.spans[1]
    spans = [replace(wait, offset_ns=number * 20 * MS, length_ns=10 * MS) for number in range(9)]
    store.put([SESSION], [replace(STALL, timeline=replace(STALL.timeline, spans=tuple(spans)))])
    client = let_in(client_of(store))
    text = client.get("/issue", params={"id": STALL.id}).text
    checked(text)
    swatches = 1  # beside its words
    assert text.count('class="t-gil-wait"') == len(spans) + swatches
    assert text.count('fill="url(#hatch)"') == len(spans) + swatches


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("/stall?id=s1-1", "/issue?id=s1-1"),
        ("/method?id=a%26b", "/issue?id=a%26b"),
        ("/issues", "/groups?kind=other"),
        ("/issues?kind=jank", "/groups?kind=jank"),
    ],
)
def test_old_addresses_lead_to_the_pages_of_now(client: TestClient, old: str, new: str):
    answer = client.get(old)
    assert (answer.status_code, answer.headers["location"]) == (301, new)


def test_bugs_of_other_kinds_are_noted_ignored_and_deleted(client: TestClient, filled: Store):
    jank = ISSUES[0]
    said = {"f": jank.fingerprint, "note": "the new level", "ignored": "1"}
    assert client.post("/group/remark", data=said, headers=ORIGIN).status_code == 303
    assert "the new level" in client.get("/group", params={"f": jank.fingerprint}).text
    assert jank.title not in client.get("/groups?kind=other").text
    assert jank.title in client.get("/groups?kind=jank&ignored=1").text
    client.post("/group/delete", data={"f": jank.fingerprint, "sure": "yes"}, headers=ORIGIN)
    assert filled.reader.issue(jank.id) is None


def test_the_overview_names_line_cause_and_what_to_do(client: TestClient):
    text = client.get("/").text
    assert "lock.acquire() in flush (cache.py:12)" in text
    assert "waiting for a lock" in text.lower()
    assert "1 killed" in text
    assert "killed during this stall" in text.partition('id="rank-title"')[0]


def test_a_group_and_its_stall_tell_all(client: TestClient):
    group = client.get("/group", params={"f": "1:f00d"}).text
    for words in (
        "json.loads(body)",
        "shop/orders.py:87",
        "native-cpu",
        "await asyncio.to_thread",
        "innermost frame stayed",
    ):
        assert words in group
    one = client.get("/issue", params={"id": "s1-1"}).text
    for words in (
        "412 ms",
        "orders.py:87",
        "vscode://file/srv/shop/orders.py:87",
        "Task-17",
        "Timeline",
    ):
        assert words in one


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names_stay_text(store: Store, text: str):
    """In every field of everything; nothing of it is markup, and nothing turns the reading order."""
    ran = session(
        id="h",
        name=text,
        version=text,
        host=text,
        python=text,
        command=text,
        labels=((text, text),),
        engine=text,
    )
    store.put([ran], [hostile_stall(text, number) for number in range(2)])
    store.put([], [stall(id="other", session="h", fingerprint=text or "empty", title=text, scene=text)])
    store.remark("h0", Remark(note=text))
    told = {"title": text, "thread": text, "loop": text, "scene": text, "advice": text, "session": "h"}
    frame = replace(STALL.stacks[0].frames[0], function=text, qualname=text, file=f"/{text}")
    phase, row = replace(STARTUP.phases[0], name=text), replace(SLOW_METHOD.rows[0], frame=frame)
    store.put_issue(replace(STARTUP, **told, program=text, phases=(phase, replace(phase, depth=1))))
    store.put_issue(replace(SLOW_METHOD, **told, rows=(row, replace(row, depth=1)), key=1))
    client = let_in(client_of(store, sight=Sight(notices=(text,))))
    for path, page in all_pages(client, store).items():
        checked(page)
        # What a form sends back has to be what was stored.
        shown = re.sub(r"<textarea.*?</textarea>|value=\"[^\"]*\"", "", page, flags=re.DOTALL)
        found = re.search("[\u202a-\u202e\u2066-\u2069\u200f\x00\x1b\x9b]", shown)
        assert found is None, (path, shown[max(found.start() - 80, 0) : found.end() + 40])
        assert len(page) < 400_000
    for form in ("text", "markdown", "json"):
        assert client.get("/stall/export", params={"id": "h-0", "form": form}).status_code == 200


def test_levels_of_frames_are_as_wide_as_their_time(store: Store):
    store.put([replace(SESSION, traces=TRACES)], [])
    text = let_in(client_of(store)).get("/frames").text
    widths = re.findall(r'<rect class="d([0-4])" x="[0-9.]+" width="([0-9.]+)"', text)
    # One frame of 281 dropped 23: it lasted as long as 24 of 304.
    assert ("2", "7.89") in widths


def test_each_late_frame_has_the_words_of_its_own_stall(store: Store):
    asleep = stall(id="s1-7", cause=Cause.SLEEP, title="time.sleep(0.3) in save (boss.py:7)", duration_ns=9)
    child = stall(id="s1-8", cause=Cause.SUBPROCESS, title="run() in shoot (boss.py:8)")
    frames = [
        LateFrame(began_wall_ns=STALL.began_wall_ns, duration_ns=400 * MS - number, dropped=9, stalls=stalls)
        for number, stalls in enumerate([("s1-7", "s1-8"), ("s1-7",), (), ("s1-gone",)])
    ]
    store.put([SESSION], [asleep, child])
    store.put_issue(replace(JANK, cause=Cause.LOCK, worst=tuple(frames)))
    text = let_in(client_of(store)).get("/frames").text
    rows = text.split("<tr><td>")[1:]
    said = [
        ("subprocess", "run() in shoot (boss.py:8)"),
        ("sleep", "time.sleep(0.3) in save (boss.py:7)"),
        ("no stall recorded",),
        ("its stall is no longer stored",),
    ]
    assert [all(word in row for word in words) for row, words in zip(rows, said, strict=True)] == [True] * 4
    assert "c-lock" not in text


def test_a_run_s_page_says_what_its_tasks_waited_for(store: Store):
    frame = StackFrame(function="work", qualname="work", file="/srv/jobs.py", line=11, in_app=True)
    waits = WaitingTasks(
        count=50, name="worker-1", waits="wait for an item", since_wall_ns=BEGAN, frames=(frame,)
    )
    survey = TaskSurvey(taken_wall_ns=BEGAN + 5 * S, tasks=51, groups=(waits,))
    store.put([replace(SESSION, survey=survey)], [])
    page = let_in(client_of(store)).get(f"/session?id={SESSION.id}").text
    for words in ("51 tasks of asyncio", "wait for an item", "5.00 s", "jobs.py:11", "work"):
        assert words in page


def test_requests_are_on_overview_and_run_and_not_on_frames(store: Store):
    store.put([replace(SESSION, traces=TraceFigures(input=(REQUESTS,)))], [STALL])
    client = let_in(client_of(store))
    for path in ("/", f"/session?id={SESSION.id}"):
        text = client.get(path).text
        checked(text)
        assert "20 of some 320 requests timed" in text
        assert "slowest of these" in text
    page = report_page(store.reader, STALLS, TOOLS, limit=9, now_wall_ns=STALL.began_wall_ns)
    assert b"20 of some 320 requests timed" in document(page, "")
    frames = client.get("/frames").text
    assert "requests timed" not in frames
    assert "No frames were seen" in frames


def test_bugs_are_listed_with_the_line_that_held_the_gil(store: Store):
    hog = Culprit(function="hog", qualname="hog", file="/srv/hog.py", line=7, source=None, in_app=True)
    holder = Holder(thread="pool", culprit=hog)
    parts = (Portion(share=0.6, cause=Cause.GIL, culprit=None, blocker=None),)
    store.put([SESSION], [stall(cause=Cause.GIL, holder=holder, holders=(holder,), portions=parts)])
    client = let_in(client_of(store))
    said = "<code>hog.py:7</code> in <code>hog</code></span> held the GIL"
    assert said in client.get("/groups").text
    assert "orders.py:87" not in client.get("/groups").text.partition("<tbody>")[2].replace(STALL.title, "")
    assert said in client.get("/issue", params={"id": STALL.id}).text


def test_the_flame_graph_is_that_of_the_thread_that_held_the_gil(store: Store):
    holder = Holder(thread="pool-1", culprit=STALL.culprit)
    store.put([SESSION], [stall(cause=Cause.GIL, holder=holder)])
    client = let_in(client_of(store))
    page = report_page(store.reader, STALLS, TOOLS, limit=9, now_wall_ns=STALL.began_wall_ns)
    texts = [client.get(path).text for path in (f"/issue?id={STALL.id}", f"/group?f={STALL.fingerprint}")]
    for text in (*texts, document(page, "").decode()):
        held, _, waited = text.partition("Stacks of the thread that waited")
        assert 'held-flame-data"' in held
        assert 'flame-data"' in waited
    for text in texts:
        checked(text)


def test_pages_use_the_glossary_s_words(store: Store):
    sleeper = ThreadView(tid=3349, name="saver", state="S", holds_gil=False, waits_for_gil=False, frames=())
    store.put([SESSION], [stall(severity=Severity.ANR, threads=(sleeper,))])
    client = let_in(client_of(store))
    text = client.get("/issue", params={"id": STALL.id}).text
    assert "saver" in text
    assert "sleeping</span>" in text
    for path in (f"/issue?id={STALL.id}", f"/session?id={SESSION.id}"):
        text = client.get(path).text
        assert ">not responding</span>" in text
        assert "ANR" not in text


def test_a_short_watch_has_a_share_of_time_and_no_hourly_rate(store: Store):
    loops = tuple(
        replace(SESSION.loops[0], thread=f"{seconds} s", window_ns=seconds * S, stalled_ns=3 * S)
        for seconds in (5, 1_800)
    )
    store.put([replace(SESSION, loops=loops)], [])
    text = let_in(client_of(store)).get("/").text
    assert '<td class="num">60 %</td>' in text
    assert '<td class="num">6 s/h</td>' in text


def test_a_cause_is_hatched_or_not_in_every_store(store: Store, tmp_path: Path):
    other = Store(tmp_path / "other", retention=Retention(age_ns=1 << 62))
    lengths = {Cause.CPU: 9, Cause.NATIVE_CPU: 7, Cause.GIL: 5}
    for one, order in ((store, 1), (other, -1)):
        for cause, n in lengths.items():
            one.put([SESSION], [stall(id=cause.value, cause=cause, duration_ns=(10 + order * n) * S)])
    texts = [let_in(client_of(one)).get("/").text for one in (store, other)]
    other.close()
    drawn = [json.loads(script_of(text, "chart-data")) for text in texts]
    first, second = ({one["label"]: one["hatched"] for one in chart["series"]} for chart in drawn)
    assert first == second == {"cpu": False, "native-cpu": True, "gil": False}


def script_of(text: str, name: str) -> str:
    return text.partition(f'id="{name}">')[2].partition("</script>")[0]


def test_the_first_bug_s_bar_is_full_and_has_its_cause_s_colour(store: Store):
    lengths = {"1:a": 600, "1:b": 300, "1:c": 300}
    for bug, length_ms in lengths.items():
        store.put([SESSION], [stall(id=bug, fingerprint=bug, cause=Cause.GIL, duration_ns=length_ms * MS)])
    rank = let_in(client_of(store)).get("/").text.partition('<ol class="rank">')[2].partition("</ol>")[0]
    assert re.findall(r'class="fill" width="([0-9.]+)"', rank) == ["100.0", "50.0", "50.0"]
    assert rank.count('class="meter c-gil"') == 3


def test_a_stall_s_page_has_no_words_for_next_to_nothing(store: Store):
    spent = replace(STALL.ledger, on_cpu_ns=400 * MS, gil_wait_ns=0, run_queue_ns=900_000, blocked_ns=11 * MS)
    calls = (Contributor(name="Bus us", count=1, total_ns=240_000, longest_ns=240_000),)
    spent = replace(spent, gc_ns=90_000, error_ns=410_000)
    store.put([SESSION], [stall(ledger=spent, contributors=calls)])
    text = let_in(client_of(store)).get("/issue", params={"id": STALL.id}).text
    ledger = text.partition('<div class="ledger">')[2].partition("</div>")[0]
    assert "on CPU <b>400 ms</b>" in ledger
    assert "blocked <b>11.0 ms</b>" in ledger
    assert "waiting for a CPU" not in ledger
    assert "collecting garbage" not in ledger
    assert "\u00b1 410 \u00b5s" in ledger
    assert "Bus us x1, 240 \u00b5s" in text
    assert "</a> \u00b7 <a" in text.partition("Open as")[2].partition("</p>")[0]


def test_a_bug_s_page_says_of_how_many_stalls_a_name_is(store: Store):
    scenes = [None, "cart", "cart"]
    store.put([SESSION], [stall(id=f"s1-{k}", scene=scene, task="Task-7") for k, scene in enumerate(scenes)])
    text = let_in(client_of(store)).get("/group", params={"f": STALL.fingerprint}).text
    assert 'cart <span class="dim">2 of 3</span>' in text
    assert "Task-#" not in text


def test_an_empty_store_says_how_to_begin(store: Store):
    client = let_in(client_of(store))
    for text in all_pages(client, store).values():
        checked(text)
    for path in ("/", "/sessions", "/groups", "/changes"):
        assert f"<pre>loopcanary run --store {store.folder} app.py</pre>" in client.get(path).text


def test_pages_that_nothing_fills_are_under_more(client: TestClient, tmp_path: Path):
    empty = Store(tmp_path)
    pages = (let_in(client_of(empty)).get("/").text, client.get("/").text)
    empty.close()
    for text, is_filled in zip(pages, (False, True), strict=True):
        shown, _, more = text.partition("</nav>")[0].partition('<details class="more">')
        for path in ("/frames", "/startup", "/methods", "/groups?kind=other"):
            assert (f'href="{path}"' in shown, f'href="{path}"' in more) == (is_filled, not is_filled)


def test_changes_name_the_command_for_other_comparisons(store: Store):
    later = session(id="s2", started_wall_ns=SESSION.started_wall_ns + 3_600 * S, ended_wall_ns=None)
    store.put([SESSION, later], [STALL, stall(id="s2-1", session="s2")])
    text = let_in(client_of(store)).get("/changes").text
    assert f"<code>loopcanary diff --before 1d --store {store.folder}</code>" in text


def test_a_store_that_was_watched_without_a_stall(store: Store):
    store.put([SESSION], [])
    assert "<h2>No stall was recorded</h2>" in let_in(client_of(store)).get("/").text
    store.put([], [DEADLOCK])
    assert ">1 issue of other kinds</a></h2>" in let_in(client_of(store)).get("/").text


def test_what_lasted_no_time_has_no_length_on_pages(store: Store):
    finding = replace(FINDING, duration_ns=0)
    found = [replace(finding, id=f"o{number}", began_wall_ns=BEGAN + number * S) for number in range(3)]
    store.put([SESSION], found)
    client = let_in(client_of(store))
    bug = FINDING.fingerprint
    for path in (f"/group?f={bug}", "/issue?id=o1", "/groups?kind=other", f"/stalls?f={bug}"):
        text = client.get(path).text
        checked(text)
        assert "reads the whole table" in text
        assert re.search(r"<b>0<|num[^>]*>0 *<|waiting for a lock|longest one", text, re.IGNORECASE) is None


def test_a_damaged_store_is_named_and_begun_anew(filled: Store):
    client = let_in(client_of(filled))
    assert client.get("/groups").status_code == 200
    filled.close()
    filled.path.write_bytes(b"this is no database" * 1_000)
    for path in PAGES:
        answer = client.get(path)
        assert answer.status_code in (200, 503)
        checked(answer.text)
    assert client.get("/groups").status_code == 200


def test_a_store_that_cannot_be_opened_is_a_page_that_says_so(tmp_path: Path):
    folder = tmp_path / "store"
    folder.write_text("a file")
    answer = let_in(client_of(Store(folder))).get("/groups")
    assert answer.status_code == 503
    checked(answer.text)
    assert "cannot be" in answer.text


def test_what_is_not_there_is_404(client: TestClient):
    for path in (
        "/none",
        "/group",
        "/group?f=none",
        "/issue?id=none",
        "/session?id=s",
        "/group/delete?f=x",
    ):
        answer = client.get(path)
        assert answer.status_code == 404
        checked(answer.text)
    assert client.get("/stall/export?id=none&form=json").status_code == 404
    assert client.get("/stall/export?id=s1-1&form=exe").status_code == 404
    assert client.get("/static/../app.py").status_code == 404


def test_the_filters_let_through_what_they_say(client: TestClient):
    def titles(**asked: str) -> set[str]:
        text = client.get("/groups", params=asked).text
        return {title for title in (STALL.title, KILLED.title) if title in text}

    assert titles() == {STALL.title, KILLED.title}
    assert titles(cause="lock") == {KILLED.title}
    assert titles(text="orders loads") == {STALL.title, KILLED.title}
    assert titles(text="flush") == {KILLED.title}
    assert titles(scene="checkout") == {STALL.title, KILLED.title}
    assert titles(scene="-") == {STALL.title}
    assert titles(scene="nowhere") == set()
    assert titles(session="s1") == {STALL.title, KILLED.title}
    assert titles(session="s2") == set()
    assert titles(code="own") == {STALL.title, KILLED.title}
    assert titles(code="library") == set()
    assert titles(since="1h") == set()
    assert "Nothing matches" in client.get("/groups", params={"since": "1h"}).text


def test_bugs_and_runs_are_of_one_program_if_asked(filled: Store):
    filled.put(
        [session(id="m1", name="mail")], [stall(id="m", session="m1", fingerprint="1:mail", title="post")]
    )
    client = let_in(client_of(filled))
    bugs = client.get("/groups", params={"program": "mail"}).text
    assert (bugs.count('href="/group?'), "post" in bugs) == (1, True)
    assert '<option value="mail" selected>' in bugs
    runs = client.get("/sessions", params={"program": "mail"}).text
    assert set(links(runs, "/session?")) == {"/session?id=m1"}
    assert "No run of this program" in client.get("/sessions", params={"program": "no\0ne"}).text


def test_entries_say_how_many_there_are(client: TestClient):
    page = client.get("/doctor").text
    counts = dict(re.findall(r'id="count-(\w+)" data-refresh>([\d,]+)<', page))
    assert counts == {"groups": "2", "sessions": "1", "issues": str(len(ISSUES))}


def test_what_no_filter_is_called_is_no_trouble(store: Store):
    store.put([SESSION], [stall(id=f"s1-{n}", fingerprint=f"1:{n:04}") for n in range(60)])
    client = let_in(client_of(store))
    asked = {"path": "/x", "asked": "y", "self": "z", "cause": ["native-cpu", "lock"]}
    text = client.get("/groups", params=asked).text
    checked(text)
    assert "path=%2Fx&amp;asked=y&amp;self=z&amp;cause=native-cpu&amp;cause=lock&amp;page=2" in text


def test_filters_that_make_no_sense_are_refused_in_words(client: TestClient):
    asked = {"since": "soon", "cause": "</script>", "page": "-7", "scene": "\x00"}
    text = client.get("/groups", params=asked).text
    checked(text)
    assert "is not a duration" in text
    assert "is not a cause" in text
    for page in ("0", "99999999999999999999", "x", "٣", "2"):
        assert client.get("/groups", params={"page": page}).status_code == 200


def test_a_bug_is_ignored_with_a_note_and_comes_back(client: TestClient, filled: Store):
    group = {"f": "1:f00d"}
    answer = client.post("/group/remark", data={**group, "note": "TICKET-7", "ignored": "1"}, headers=ORIGIN)
    assert answer.status_code == 303
    assert filled.reader.remarks() == {"1:f00d": Remark(ignored=True, note="TICKET-7")}
    assert STALL.title not in client.get("/groups").text
    assert STALL.title not in client.get("/").text
    assert "TICKET-7" in client.get("/groups", params={"ignored": "1"}).text
    assert "TICKET-7" in client.get("/group", params=group).text
    client.post("/group/remark", data=group, headers=ORIGIN)
    assert filled.reader.remarks() == {}
    assert STALL.title in client.get("/groups").text


def test_deleting_asks_first(client: TestClient, filled: Store):
    question = client.get("/group/delete", params={"f": "1:f00d"}).text
    assert "2 stalls" in question
    unsure = client.post("/group/delete", data={"f": "1:f00d"}, headers=ORIGIN)
    assert unsure.headers["location"] == "/group/delete?f=1%3Af00d"
    assert filled.reader.issue("s1-1") is not None
    client.post("/group/delete", data={"f": "1:f00d", "sure": "yes"}, headers=ORIGIN)
    assert filled.reader.issue("s1-1") is None
    assert filled.reader.issue("s1-2") is not None


def test_nothing_in_particular_is_never_deleted(client: TestClient, filled: Store):
    client.post("/group/delete", data={"f": "", "sure": "yes"}, headers=ORIGIN)
    assert filled.reader.issue("s1-1") is not None


def test_a_stall_is_shared_in_three_forms(client: TestClient):
    told = client.get("/stall/export", params={"id": "s1-1", "form": "json"})
    assert told.headers["content-type"] == "application/json"
    assert told.json()["stalls"][0]["id"] == "s1-1"
    assert "json.loads(body)" in client.get("/stall/export", params={"id": "s1-1", "form": "text"}).text
    assert "```" in client.get("/stall/export", params={"id": "s1-1", "form": "markdown"}).text


def test_what_goes_on_now_is_first(store: Store):
    running = session(end=SessionEnd.RUNNING, ended_wall_ns=None)
    going_on = stall(id="s1-9", state=StallState.ONGOING)
    store.overlay([running], [going_on])
    client = let_in(client_of(store, sight=Sight(running=(running,), ongoing=(going_on,))))
    text = client.get("/").text
    checked(text)
    assert "Stalled now for" in text
    assert "1 stall in progress" in text


def test_a_process_of_another_host_runs_as_far_as_is_known(store: Store):
    store.put([session(id="s9", ended_wall_ns=None, end=SessionEnd.RUNNING, host="elsewhere")], [])
    store.put([session(id="s8", ended_wall_ns=None, end=SessionEnd.RUNNING, host=platform.node())], [])
    client = let_in(client_of(store))
    assert client.get("/sessions").text.count("as far as is known (other host)") == 1
    assert "as far as is known" in client.get("/session", params={"id": "s9"}).text
    assert "as far as is known" not in client.get("/session", params={"id": "s8"}).text


def test_a_bug_of_another_kind_has_one_list_with_links(client: TestClient):
    text = client.get("/group", params={"f": JANK.fingerprint}).text
    assert text.count(">Latest<") == 1
    assert f'href="/issue?id={JANK.id}"' in text.partition('id="latest"')[2]
    assert re.search(r'aria-current="page">Issues\b', text)
    assert "stalled" not in text.partition("<main")[2]


@pytest.mark.parametrize("kind", ["jank", "other"])
def test_a_list_of_other_kinds_speaks_of_no_stalls(client: TestClient, kind: str):
    text = client.get("/groups", params={"kind": kind}).text
    assert re.search(r'aria-current="page">Issues\b', text)
    assert "what stalls" not in text
    assert ">stalled<" not in text


def links(text: str, path: str) -> list[str]:
    return [unescape(one) for one in re.findall(rf'href="({re.escape(path)}[^"]*)"', text)]


def test_each_cell_of_a_map_opens_its_stalls(store: Store):
    many = [
        stall(id=f"n{n}", began_wall_ns=SESSION.started_wall_ns + n * 7 * S, duration_ns=(100 + n * 40) * MS)
        for n in range(210)
    ]
    store.put([SESSION], many)
    client = let_in(client_of(store))
    cells = links(client.get("/group", params={"f": many[0].fingerprint}).text, "/stalls?")
    assert len(cells) > 40
    assert sum(client.get(cell).text.count('href="/issue?') for cell in cells) == 210


def test_each_point_of_a_bug_and_a_run_is_its_stall(client: TestClient):
    for address in ("/group?f=1%3Af00d", f"/session?id={SESSION.id}"):
        page = client.get(address).text
        points = page[page.index('class="points"') :].partition("</svg>")[0]
        found = links(points, "/issue?")
        assert {f"/issue?id={one}" for one in (STALL.id, "s1-3")} <= set(found)
        assert points.count("<circle") == len(found)


def test_each_time_of_the_chart_opens_the_stalls_that_last_in_it(store: Store):
    long = stall(id="long", duration_ns=3 * S)
    store.put([SESSION], [long, stall(id="later", began_wall_ns=long.began_wall_ns + 60 * S)])
    client = let_in(client_of(store))
    for page in ("/", f"/session?id={SESSION.id}"):
        cells = links(client.get(page).text, "/stalls?")
        found = [links(client.get(cell).text, "/issue?") for cell in cells]
        assert found.count(["/issue?id=long"]) >= 2
        assert found[-1] == ["/issue?id=later"]
    assert "2 stalls" not in client.get("/stalls?from=x&to=1e9&least=-").text
    assert client.get("/stalls?f=%00&session=%ff&from=-1&to=99999999999999999999&below=0").status_code == 200


def test_the_doctor_page_is_sent_while_its_rows_are_found(filled: Store):
    order: list[str] = []

    def rows() -> Iterator[tuple[str, str, str]]:
        for name in ("engine", "loops"):
            order.append(f"asked {name}")
            yield name, "problem" if name == "loops" else "ok", "detail"

    async def send(message: Any) -> None:
        text = message.get("body", b"").decode()
        order.extend(f"sent {word}" for word in ("Stores", "engine", "loops", "1 problem") if word in text)

    async def receive() -> dict[str, Any]:
        await anyio.sleep_forever()
        return {}

    site = site_of(filled, tools=replace(TOOLS, doctor=rows))
    scope = {"type": "http", "method": "GET", "path": "/doctor", "query_string": b"", "headers": []}
    anyio.run(application(site), scope, receive, send)
    assert order == [
        "sent Stores",
        "asked engine",
        "sent engine",
        "asked loops",
        "sent loops",
        "sent 1 problem",
    ]
