from __future__ import annotations

import io
import json
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from rich.console import Console
from tests.building.anything import any_of
from tests.building.issues import ISSUES, JANK, REQUESTS, TRACES
from tests.building.stalls import (
    BEGAN,
    CULPRIT,
    FRAMES,
    HOSTILE,
    KILLED,
    SESSION,
    SOURCE,
    STALL,
    S,
    frame,
    hostile_stall,
    stall,
)
from tests.report.schema_check import Place, problems

import loopcanary.report
from loopcanary.document import markdown
from loopcanary.document.parts import Document
from loopcanary.document.stacks import Fold, folded, package_of
from loopcanary.model import Cause, Holder, Session, Stall, TraceFigures
from loopcanary.model.search import IssueQuery, Totals
from loopcanary.report import as_json
from loopcanary.report import text as text_printer
from loopcanary.report.documents import document_of
from loopcanary.report.model import Report, build, of_bug, of_issue
from loopcanary.store import Store

GOLDEN = Path(__file__).parent / "golden"
SCHEMA = json.loads(Path(loopcanary.report.__file__).with_name("report-schema-1.json").read_text("utf-8"))
ALL = IssueQuery()
NOW = BEGAN + 3_600 * S


@pytest.fixture
def full(store: Store) -> Store:
    unknown = stall(id="s1-3", fingerprint="1:none", title="?", culprit=None, stacks=(), cause=Cause.UNKNOWN)
    store.put([SESSION], [STALL, KILLED, unknown, stall(id="s1-4", began_wall_ns=BEGAN + 90_000 * S)])
    return store


def report_of(source: Store, limit: int = 20) -> Report:
    return build(source.reader, ALL, limit=limit, now_wall_ns=NOW)


def group_of(source: Store, limit: int = 20) -> Report:
    return bug_of(
        source, STALL.fingerprint, ("scope=callback", "culprit.file=orders.py", "culprit.function=f"), limit
    )


def bug_of(source: Store, fingerprint: str, parts: tuple[str, ...], limit: int = 20) -> Report:
    report = of_bug(source.reader, fingerprint, limit=limit, now_wall_ns=NOW, explain=lambda *_: parts)
    assert report is not None
    return report


def stall_of(source: Store, one: Stall) -> Report:
    return of_issue(source.reader, one, now_wall_ns=NOW, explain=lambda *_: ())


def as_shown(report: Report, *, width: int = 80, **options: Any) -> str:
    """What a console of that width shows of a report."""
    return on_screen(document_of(report), width=width, **options)


def on_screen(document: Document, *, width: int = 80, **options: Any) -> str:
    """What a console of that width shows of a document."""
    screen = Screen(encoding=options.pop("encoding", "utf-8"))
    console = Console(
        file=screen, width=width, markup=False, emoji=False, highlight=False, _environ={}, **options
    )
    text_printer.show(document, console)
    return screen.getvalue()


def as_markdown(report: Report, folder: str = "/srv/shop") -> str:
    return markdown.render(document_of(report, in_detail=True), folder)


class Screen(io.StringIO):
    def __init__(self, encoding: str) -> None:
        super().__init__()
        self._name = encoding

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._name


def golden(name: str, text: str) -> None:
    """Compares with the file; LOOPCANARY_GOLDEN=1 writes it instead, to be looked at and committed."""
    path = GOLDEN / name
    if os.environ.get("LOOPCANARY_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


# ---- text ----------------------------------------------------------------------------------------


def test_the_report_as_text(full: Store) -> None:
    golden("report.txt", as_shown(report_of(full)))


def test_a_bug_as_text(full: Store) -> None:
    golden("group.txt", as_shown(group_of(full)))


def test_a_stall_as_text(full: Store) -> None:
    golden("stall.txt", as_shown(stall_of(full, KILLED)))


def test_a_report_that_is_cut_says_what_it_leaves_out(full: Store) -> None:
    text = as_shown(report_of(full, limit=1))
    assert "4 stalls in 3 bugs" in text
    assert "and 2 more bugs (--limit 0 shows all)" in text
    assert "and 3 before" in text


def test_requests_are_said_to_be_a_sample(store: Store) -> None:
    store.put([replace(SESSION, traces=TraceFigures(input=(REQUESTS,)))], [STALL])
    said = (
        "20 of some 320 requests timed: p50 254 us, p98 4.39 ms, slowest of these 4.39 ms (GET /orders); "
        "25 % of it waiting"
    )
    text = " ".join(as_shown(report_of(store)).split())
    assert f"Requests MainThread {said}" in text
    assert "Input" not in text
    assert said in as_markdown(report_of(store))


def test_frames_input_and_idle_work(store: Store) -> None:
    store.put([replace(SESSION, traces=TRACES)], [STALL])
    for issue in ISSUES:
        store.put_issue(issue)
    report = report_of(store)
    golden("frames.txt", as_shown(report))
    golden("frames.md", as_markdown(report))
    document = as_json.report_to_dict(report)
    assert list(problems(document, SCHEMA, Place(SCHEMA))) == []
    assert [issue["kind"] for issue in document["issues"]] == [
        "slow-method",
        "startup",
        "idle",
        "input",
        "jank",
    ]
    assert document["sessions"][0]["frames"][0]["drop_level"]["middle"] == 1


def test_jank_without_a_stall_is_reported_too(store: Store) -> None:
    store.put([SESSION], [])
    store.put_issue(JANK)
    text = as_shown(report_of(store))
    assert "No stall was recorded." in text
    assert JANK.title in text


def test_only_paths_make_lines_longer_than_the_screen(full: Store) -> None:
    for width in (80, 100):
        text = as_shown(report_of(full), width=width)
        long = [line for line in text.splitlines() if len(line) > width]
        assert all("/" in line for line in long), long


def test_a_terminal_gets_colours_and_links(full: Store) -> None:
    text = as_shown(report_of(full), force_terminal=True, color_system="standard")
    assert "\x1b[36m" in text
    assert re.search(r"\x1b\]8;id=\d+;file:///srv/shop/orders.py#87\x1b\\", text)


def test_an_old_encoding_gets_plain_bars(full: Store) -> None:
    report = group_of(full)
    text = as_shown(report, encoding="ascii")
    text += as_shown(report, encoding="ascii")
    assert text.isascii()
    assert "time     ###############" in text
    assert "time     @" in text


# ---- JSON ----------------------------------------------------------------------------------------


def test_the_report_as_json_is_what_its_schema_says(full: Store) -> None:
    document = json.loads(as_json.render(report_of(full)))
    assert list(problems(document, SCHEMA, Place(SCHEMA))) == []
    assert document["totals"] == {
        "stalls": 4,
        "groups": 3,
        "total_ms": pytest.approx(8547.037, abs=0.001),
        "watched_ms": pytest.approx(77_310),
    }
    assert [group["fingerprint"] for group in document["groups"]] == ["1:dead", "1:f00d", "1:none"]
    assert document["groups"][1]["stall_ids"] == ["s1-4", "s1-1"]


@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=50)
@given(one=any_of(Stall), session=any_of(Session))
def test_any_stall_and_session_give_a_report_of_the_schema(one: Stall, session: Session) -> None:
    report = Report(
        generated_wall_ns=NOW,
        sums=Totals(issues=1, groups=1, total_ns=1),
        sessions=[session],
        groups=[],
        worst={},
        stalls=[one],
    )
    text = as_json.render(report)
    assert text.isascii()
    assert list(problems(json.loads(text), SCHEMA, Place(SCHEMA))) == []


def test_every_field_of_the_schema_is_on_its_page(tree: Path) -> None:
    page = (tree / "docs/internals/report-schema.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([a-z0-9_]+)`", page))
    fields = {name for part in [SCHEMA, *SCHEMA["$defs"].values()] for name in part.get("properties", {})}
    assert fields <= named, fields - named
    assert {cause.value for cause in Cause} == set(SCHEMA["$defs"]["cause"]["enum"])
    assert {cause.value for cause in Cause} <= set(re.findall(r"`([a-z-]+)`", page))


def test_the_schema_check_sees_what_is_wrong(full: Store) -> None:
    document = json.loads(as_json.render(report_of(full)))
    document["stalls"][0]["cause"] = "magic"
    del document["stalls"][1]["ledger"]
    document["groups"][0]["count"] = "1"
    document["sessions"][0]["started_at"] = "now"
    assert len(list(problems(document, SCHEMA, Place(SCHEMA)))) == 4


def test_an_empty_report_is_a_report(store: Store) -> None:
    assert list(problems(json.loads(as_json.render(report_of(store))), SCHEMA, Place(SCHEMA))) == []


# ---- Markdown ------------------------------------------------------------------------------------


def test_the_report_as_markdown(full: Store) -> None:
    golden("report.md", as_markdown(report_of(full)))


def test_markdown_shows_the_line_that_held_what_was_waited_for(store: Store) -> None:
    """Of a stall that another thread made, that line is the one to change."""
    held = stall(
        id="s1-7", fingerprint="1:gil", culprit=None, holder=Holder(thread="pool-1", culprit=CULPRIT)
    )
    ran = replace(SESSION, version="1.2", system="Linux 6.1", machine="x86_64", cores=8)
    store.put([ran], [held])
    markdown = as_markdown(bug_of(store, "1:gil", ()))
    assert "no frame could be read" not in markdown
    assert f"held at `orders.py:87` in `Orders.load_orders`\n\n```python\n{SOURCE}\n" in markdown
    assert "- **Process**: shop 1.2, pid 41 on here, CPython" in markdown
    assert "Linux 6.1 x86\\_64, 8 cores" in as_markdown(report_of(store))


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("a_b *c* [d](e) `f`", "a\\_b \\*c\\* \\[d\\](e) \\`f\\`"),
        ("</script> & @me #1", "&lt;/script&gt; &amp; &#64;me \\#1"),
        ("http://evil www.evil", "http\\://evil www\\.evil"),
        ("&lt; &#64;", "&amp;lt; &amp;\\#64;"),
        ("line\nbreak", "line\\\\nbreak"),
    ],
)
def test_markdown_shows_text_as_it_is(text: str, escaped: str) -> None:
    assert markdown.escaped(text) == escaped


@pytest.mark.parametrize(
    ("text", "span"),
    [("plain", "`plain`"), ("a`b", "``a`b``"), ("`a``", "``` `a`` ```"), ("", "")],
)
def test_code_spans_hold_their_backticks(text: str, span: str) -> None:
    assert markdown.code(text) == span


# ---- hostile names -------------------------------------------------------------------------------

RAW = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


@pytest.mark.parametrize("text", HOSTILE)
def test_no_name_reaches_a_reader_raw(store: Store, text: str) -> None:
    one = hostile_stall(text)
    loops = tuple(replace(loop, thread=text, kind=text) for loop in SESSION.loops)
    store.put([replace(SESSION, name=text, python=text, version=text, loops=loops)], [one])
    report, bug = report_of(store), bug_of(store, one.fingerprint, (f"a={text}",))
    texts = [
        as_shown(report),
        as_shown(bug),
        as_shown(stall_of(store, one)),
        as_markdown(report),
        as_markdown(bug),
        as_json.render(report),
        as_json.render(bug),
    ]
    for shown in texts:
        assert RAW.search(shown) is None
    assert "<script" not in texts[5] + texts[6]
    outside_code = re.sub(r"(`+).*?\1", "", texts[3] + texts[4], flags=re.DOTALL)
    assert "<script" not in outside_code
    assert "@everyone" not in outside_code


# ---- folding -------------------------------------------------------------------------------------


def test_frames_of_others_are_folded_and_the_innermost_stays() -> None:
    rows = folded(FRAMES)
    assert rows == [
        FRAMES[0],
        Fold(count=2, packages=("json",)),
        FRAMES[3],
        FRAMES[4],
        Fold(count=2, packages=("asyncio", "aiohttp")),
        FRAMES[7],
    ]


def test_a_single_frame_of_others_is_shown_and_not_folded() -> None:
    own, other = frame("f", "/a.py", 1, in_app=True), frame("g", "/b.py", 2)
    assert folded([own, other, own]) == [own, other, own]
    assert folded([]) == []


@pytest.mark.parametrize(
    ("file", "package"),
    [
        ("/v/lib/python3.12/site-packages/aiohttp/web.py", "aiohttp"),
        ("/usr/lib/python3/dist-packages/six.py", "six"),
        ("/usr/lib/python3.12/json/decoder.py", "json"),
        ("/usr/lib/python3.12/queue.py", "queue"),
        ("<frozen importlib._bootstrap>", "<frozen importlib"),
        ("", ""),
    ],
)
def test_a_package_is_recognised_by_the_path(file: str, package: str) -> None:
    assert package_of(file) == package


def test_stalls_by_the_host_are_shown_in_no_one_place(store: Store) -> None:
    title = "the host did not run the ready thread"
    store.put([SESSION], [stall(id=name, cause=Cause.HOST, title=title) for name in "ab"])
    report = report_of(store)
    shown = as_shown(report) + as_markdown(report)
    assert shown.count("in whatever code had its turn") >= 2
    assert "no frame could be read" not in shown
    assert "orders.py" not in as_shown(report)
