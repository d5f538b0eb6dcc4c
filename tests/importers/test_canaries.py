"""loopcanary import of what Matrix's other canaries report, and of reports as people paste them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some
from tests.importers.logs import logcat

from loopcanary.cli import main
from loopcanary.importers import matrix
from loopcanary.importers.matrix import begin_of
from loopcanary.importers.sources import says_nothing, streams
from loopcanary.model import FindingRule, ImportedFinding, Startup
from loopcanary.model.issues.issue import LagIssue
from loopcanary.model.search import OTHERS
from loopcanary.protocols.imports import Line, SeenFinding
from loopcanary.store import Retention, Store

MS = 1_000_000
KEPT = Retention(age_ns=1 << 62)
Captured = pytest.CaptureFixture[str]
COMMON = {"process": "com.example.shop", "time": 1_540_000_000_000}
STACK = (
    "com.example.shop.Orders.load(Orders.java:42)\n"
    "com.example.shop.MainActivity.onClick(MainActivity.java:17)\n"
    "android.view.View.performClick(View.java:5637)\n"
)
IO = {
    "path": "/data/user/0/com.example.shop/files/orders.json",
    "size": 40_960,
    "op": 312,
    "buffer": 120,
    "cost": 1_250,
    "opType": 1,
    "opSize": 37_440,
    "thread": "main",
    "stack": STACK,
    "repeat": 3,
    "tag": "io",
    "type": 1,
    **COMMON,
}
SQL = {
    "machine": "MIDDLE",
    "id": "c0ffee",
    "dbPath": "/data/user/0/com.example.shop/databases/shop.db",
    "level": 2,
    "sql": "select * from orders where customer = 'mary' and total > 17",
    "table": "orders",
    "desc": "The following sql can use index optimization:\nselect * from orders",
    "detail": "Query plan is as follows:\nSCAN TABLE orders",
    "advice": "Make an index\n on customer",
    "createTime": 1_540_000_000_000,
    "stack": STACK,
    "sqlTimeCost": 35,
    "isInMainThread": True,
    "tag": "SQLiteLint",
    "type": 1,
    "process": "com.example.shop",
}
LEAK = {
    "dump_mode": "FORK_ANALYSE",
    "activity": "com.example.shop.OrdersActivity",
    "ref_key": "MATRIX_RESCANARY_REFKEY_com.example.shop.OrdersActivity@1f_00",
    "leak_detail": "Leak Reference:static com.example.shop.Shop.listeners;"
    "com.example.shop.OrdersActivity instance;",
    "cost_millis": "5200",
    "retry_count": 0,
    "tag": "memory",
    **COMMON,
}
START = {
    "machine": "HIGH",
    "application_create": 700,
    "application_create_scene": 100,
    "first_activity_create": 3_200,
    "startup_duration": 12_400,
    "is_warm_start_up": False,
    "tag": "Trace_StartUp",
    **COMMON,
}
ANALYSED = {
    "activityLeakResult": {
        "leakFound": True,
        "excludedLeak": False,
        "className": "com.example.shop.OrdersActivity",
        "failure": "null",
        "analysisDurationMs": 5_200,
        "referenceChain": [
            "static com.example.shop.Shop.listeners",
            "com.example.shop.OrdersActivity instance",
        ],
    },
    "duplicatedBitmapResult": {
        "targetFound": True,
        "duplicatedBitmapEntries": [
            {
                "bufferHash": "d41d8cd9",
                "width": 100,
                "height": 50,
                "bufferSize": 20_000,
                "referenceChains": [["a.B c"], ["a.B d"], ["a.B e"]],
            }
        ],
    },
}


def issues_of(*texts: str) -> list[LagIssue]:
    for number, text in enumerate(texts):
        Path("in", f"{number}.txt").write_bytes(text.encode())
    assert main(["import", "in", "--store", "s"]) == 0
    store = Store(Path("s"), retention=KEPT)
    try:
        return list(store.reader.issues(OTHERS))
    finally:
        store.close()


def finding_in(content: dict[str, Any]) -> ImportedFinding:
    (issue,) = issues_of(json.dumps(content))
    assert isinstance(issue, ImportedFinding)
    return issue


def start_in(**changes: Any) -> Startup:
    (issue,) = issues_of(json.dumps({**START, **changes}))
    assert isinstance(issue, Startup)
    return issue


# ---- what each says ---------------------------------------------------------------------------


def test_file_io_on_the_main_thread() -> None:
    found = finding_in(IO)
    assert (found.rule, found.duration_ns) == (FindingRule.MAIN_THREAD_IO, 1_250 * MS)
    assert (found.operations, found.moved_bytes, found.size_bytes) == (312, 37_440, 40_960)
    assert (found.buffer_bytes, found.repeats, len(found.at.said)) == (120, 0, 2)
    assert found.began_wall_ns == (1_540_000_000_000 - 1_250) * MS
    assert found.culprit is not None
    assert (found.culprit.qualname, found.culprit.line) == ("Orders.load", 42)
    assert found.title == "file I/O on the main thread: orders.json in Orders.load"


@pytest.mark.parametrize(
    ("kind", "rule"),
    [
        (2, FindingRule.SMALL_BUFFER),
        ("3", FindingRule.REPEATED_READ),
        (4, FindingRule.NOT_CLOSED),
        (77, FindingRule.OTHER_IO),
    ],
)
def test_rules_of_io(kind: object, rule: FindingRule) -> None:
    found = finding_in({**IO, "type": kind, "thread": "pool-1"})
    assert (found.rule, found.thread, found.repeats) == (rule, "pool-1", 3)


def test_a_closeable_leak_is_a_stack_alone() -> None:
    found = finding_in({"stack": STACK, "tag": "io", "type": 4})
    assert (found.rule, found.duration_ns) == (FindingRule.NOT_CLOSED, 0)
    assert found.title == "a resource is not closed in Orders.load"


def test_a_statement_of_sqlite_lint() -> None:
    found = finding_in(SQL)
    assert (found.rule, found.duration_ns, found.thread) == (FindingRule.TABLE_SCAN, 35 * MS, "main")
    assert (found.at.table, found.at.sql) == ("orders", SQL["sql"])
    assert found.at.said[1] == "Query plan is as follows: SCAN TABLE orders"
    assert found.advice == "Make an index on customer"
    assert found.began_wall_ns == (1_540_000_000_000 - 35) * MS


def test_every_checker_of_sqlite_lint_has_a_rule() -> None:
    rules = {
        found.rule
        for kind in range(1, 10)
        for found in matrix.MATRIX.find([Line(1, json.dumps({**SQL, "type": kind}))], near_wall_ns=0)
        if isinstance(found, SeenFinding)
    }
    assert len(rules) == 9
    assert FindingRule.OTHER_SQL in rules


def test_one_statement_with_other_values_is_one_bug() -> None:
    other = {**SQL, "sql": "select * from orders  where customer = 'o''neil' and total > 4.5", "time": 1}
    assert len({issue.fingerprint for issue in issues_of(json.dumps(SQL), json.dumps(other))}) == 1


def test_what_bugs_cost_sums_up() -> None:
    """Costs of 1 to 60 ms, every third one in another function."""
    other = STACK.replace("Orders.load", "Orders.save")
    contents = [{**IO, "cost": ms, "op": 2 * ms, "stack": STACK if ms % 3 else other} for ms in range(1, 61)]
    half = "\n".join(f"tag[io]type[1];key[];content[{json.dumps(one)}]" for one in contents[30:])
    costs: dict[str, int] = {}
    for issue in issues_of(json.dumps(contents[:30]), logcat(half, "Matrix")):
        assert isinstance(issue, ImportedFinding)
        assert issue.operations * MS == 2 * issue.duration_ns
        costs[issue.fingerprint] = costs.get(issue.fingerprint, 0) + issue.duration_ns
    assert sorted(costs.values()) == [630 * MS, 1_200 * MS]


def test_a_function_is_one_bug_in_all_builds() -> None:
    lambdas = ("Orders$$Lambda$7", "Orders$$Lambda$12")
    texts = [json.dumps({**IO, "stack": STACK.replace("Orders.load", f"{one}.run")}) for one in lambdas]
    assert len({issue.fingerprint for issue in issues_of(*texts)}) == 1


@pytest.mark.parametrize(
    "content",
    [LEAK, {"activity": LEAK["activity"], "resultZipPath": "/sdcard/dump.zip", "tag": "memory"}],
    ids=["2.1", "0.4"],
)
def test_a_leaked_activity(content: dict[str, Any]) -> None:
    found = finding_in(content)
    assert (found.rule, found.at.owner) == (FindingRule.ACTIVITY_LEAK, LEAK["activity"])
    assert found.title == "an activity leaks: OrdersActivity"
    chain = ("static com.example.shop.Shop.listeners", "com.example.shop.OrdersActivity instance")
    assert found.at.chain == (chain if content is LEAK else ())


def test_an_analysis_that_failed_is_said() -> None:
    found = finding_in({**LEAK, "leak_detail": "OutOfMemoryError", "type": 3})
    assert found.at.said == ("its analysis failed: OutOfMemoryError",)


def test_the_off_line_analyser_s_result() -> None:
    bitmap, leak = sorted(issues_of(json.dumps(ANALYSED, indent=2)), key=lambda issue: issue.title)
    assert isinstance(leak, ImportedFinding)
    assert isinstance(bitmap, ImportedFinding)
    assert len(leak.at.chain) == 2
    assert (bitmap.operations, bitmap.size_bytes) == (3, 20_000)


@pytest.mark.parametrize(
    ("detail", "rule"),
    [
        ("PRIORITY_MODIFIED", FindingRule.PRIORITY_CHANGED),
        ("TIMERSLACK_MODIFIED", FindingRule.TIMER_SLACK_CHANGED),
    ],
)
def test_changes_of_the_main_thread(detail: str, rule: FindingRule) -> None:
    said = {"detail": detail, "processPriority": -10, "processTimerSlack": 60_000, "threadStack": STACK}
    found = finding_in({**said, "tag": "Trace_EvilMethod"})
    assert found.rule is rule
    assert any(words in found.at.said[0] for words in ("-10", "60,000 ns"))
    assert found.culprit is not None


def test_a_cold_start_has_its_stages() -> None:
    start = start_in()
    assert (start.start.value, start.duration_ns, start.is_slow) == ("cold", 12_400 * MS, True)
    assert start.program == "com.example.shop"
    stages = [(phase.offset_ns // MS, phase.duration_ns // MS) for phase in start.phases]
    assert stages == [(0, 700), (700, 2_500), (3_200, 9_200)]


def test_stages_of_an_older_version_are_lengths() -> None:
    start = start_in(
        stage_between_app_and_activity=100, first_activity_create=900, splash_activity_duration=2_000
    )
    assert [phase.duration_ns // MS for phase in start.phases] == [700, 100, 900, 2_000, 8_700]


def test_a_warm_start_within_its_limit_is_no_news() -> None:
    start = start_in(
        application_create=0, first_activity_create=0, startup_duration=900, is_warm_start_up=True
    )
    assert (start.start.value, start.is_news, len(start.phases)) == ("warm", False, 1)


@given(
    some.lists(some.integers(-1, 20_000), min_size=4, max_size=4),
    some.integers(1, 20_000),
    some.booleans(),
)
def test_stages_of_a_start_sum_up_to_it(costs: Sequence[int], whole: int, is_old: bool) -> None:
    keys = ("application_create", "first_activity_create", "splash_activity_duration")
    content: dict[str, Any] = dict(zip(keys, costs, strict=False)) | {"startup_duration": whole}
    content |= {"stage_between_app_and_activity": costs[3]} if is_old else {}
    (start,) = matrix.MATRIX.find([Line(1, json.dumps(content))], near_wall_ns=0)
    stages = getattr(start, "stages", ())
    assert sum(length for _, length in stages) == whole * MS


# ---- shown ------------------------------------------------------------------------------------


@pytest.fixture
def shown(capsys: Captured) -> Callable[..., str]:
    def of(*command: str) -> str:
        capsys.readouterr()
        assert main([*command, "--store", "s"]) == 0
        return capsys.readouterr().out

    return of


@pytest.mark.parametrize(
    "command",
    [
        "report",
        "report --format markdown",
        "report --format json",
        "report --format html",
        "export --format jsonl --kind finding -o -",
    ],
)
def test_they_are_in_reports_and_exports(command: str, shown: Callable[..., str]) -> None:
    issues = issues_of(*map(json.dumps, (IO, SQL, LEAK) if "finding" in command else (IO, SQL, LEAK, START)))
    said = shown(*command.split(), "--limit", "0") if "report" in command else shown(*command.split())
    assert [issue.title for issue in issues if issue.title not in said] == []


def test_a_statement_has_all_its_facts(shown: Callable[..., str]) -> None:
    (issue,) = issues_of(json.dumps(SQL))
    assert SQL["sql"] in issue.searched
    said = " ".join(shown("show", issue.id).split())
    for words in (
        "finding 35.0 ms",
        SQL["sql"],
        SQL["dbPath"],
        "SCAN TABLE orders",
        "Make an index on customer",
    ):
        assert words in said


# ---- as people paste them ---------------------------------------------------------------------


def wrapped(text: str, width: int) -> str:
    return "\n".join(text[at : at + width] for at in range(0, len(text), width))


ONE = f"tag[io]type[1];key[null];content[{json.dumps(IO)}]"
BARE = json.dumps({key: value for key, value in IO.items() if key not in ("tag", "type")})
PRINTED = "ISSUE TAG: io\nISSUE Content:\n" + "".join(
    f"\t\t\t{key} : {str(value).rstrip()}\n" for key, value in IO.items()
)
PASTED = {
    "whole": ONE,
    "tag around its content alone": f"tag[io]type[1];key[null];content[{BARE}]",
    "content as a text": json.dumps({"tag": "io", "type": 1, "content": BARE}),
    "CRLF": json.dumps(IO, indent=2).replace("\n", "\r\n"),
    "fence": f"It hangs here:\n\n```json\n{json.dumps(IO, indent=1)}\n```\n",
    "fence with a language": f"~~~ text\n{ONE}\n~~~\n",
    "quoted": "\n".join(f"> {line}" for line in json.dumps(IO, indent=1).splitlines()),
    "quoted twice": f"> > {ONE}\n>\n> yes",
    "quoted fence": f"> ```\n> {ONE}\n> ```\n",
    "inline code": f"I have `{ONE}` here",
    "indented logcat": "\n".join(f"    {line}" for line in logcat(ONE, "Matrix").splitlines()),
    "quoted logcat": "\n".join(f"> {line}" for line in logcat(wrapped(ONE, 90), "Matrix").splitlines()),
    "logcat wraps it": logcat(wrapped(ONE, 120), "Matrix"),
    "a terminal wraps it": wrapped(ONE, 79),
    "real ends of lines in its texts": json.dumps(IO).replace("\\n", "\n"),
    "an array on one line": json.dumps([IO]),
    "printed": PRINTED,
    "printed, headed": PRINTED.replace("ISSUE TAG: io", "tag : io\ntype : 1\nkey : null"),
}


@pytest.mark.parametrize("form", PASTED)
def test_a_pasted_report_is_the_same_issue(form: str) -> None:
    (pasted,) = issues_of(PASTED[form])
    assert isinstance(pasted, ImportedFinding)
    assert (pasted.rule, pasted.duration_ns) == (FindingRule.MAIN_THREAD_IO, 1_250 * MS)
    assert pasted.at.file == IO["path"]
    assert pasted.culprit is not None
    assert pasted.culprit.qualname == "Orders.load"
    assert len(pasted.stacks[0].frames) == 3


def test_two_issues_on_one_line_are_two() -> None:
    assert len(issues_of(json.dumps([IO, SQL]))) == 2


@pytest.mark.parametrize("form", ["one line", "many lines", "before another", "in a fence"])
def test_a_report_that_was_cut_is_read_up_to_there(form: str) -> None:
    text = json.dumps(IO, indent=1 if form == "many lines" else None)
    text = text[: text.index("MainActivity.onClick")]
    text += {"before another": f"\n{json.dumps(SQL)}", "in a fence": "\n```\n"}.get(form, "")
    found = [issue for issue in issues_of(text) if isinstance(issue, ImportedFinding)]
    (cut,) = [one for one in found if one.at.file]
    assert (cut.at.file, cut.operations, cut.duration_ns) == (IO["path"], 312, 1_250 * MS)
    assert cut.culprit is not None
    assert cut.culprit.line == 42
    assert len(found) == (2 if form == "before another" else 1)


def test_what_is_not_read_is_counted_by_line(capsys: Captured) -> None:
    issues_of(f"Hello\n\n```\n{ONE}\n```\nany idea?\n> me too\n")
    assert "3 lines without known content (1, 6-7)" in capsys.readouterr().err


PIECES = [ONE, BARE, PRINTED, json.dumps(SQL), json.dumps(LEAK), json.dumps(START), json.dumps(ANALYSED)]
ODD = [None, True, -1, 1e300, "", "x" * 600, [], {}, [[]], {"a": [None]}]
FIELDS = sorted({*IO, *SQL, *LEAK, *START, *ANALYSED, "stage_between_app_and_activity"})


@given(some.data())
def test_no_cut_or_change_of_a_report_raises(data: some.DataObject) -> None:
    text = data.draw(some.sampled_from(PIECES))
    text = text[: data.draw(some.integers(0, len(text)))] + data.draw(some.text(max_size=20))
    lines = [
        line
        for stream in streams(wrapped(text, data.draw(some.integers(20, 400))).split("\n"))
        for line in stream
    ]
    for found in matrix.MATRIX.find(lines, near_wall_ns=0):
        assert found.lines


@given(some.dictionaries(some.sampled_from(FIELDS), some.sampled_from(ODD) | some.integers()))
def test_no_value_of_a_field_raises(content: dict[str, Any]) -> None:
    for tag in ("io", "SQLiteLint", "memory", "Trace_StartUp"):
        text = json.dumps({**content, "tag": tag})
        for found in matrix.MATRIX.find([Line(1, text)], near_wall_ns=0):
            assert found.lines == (1,)


VALUES = some.text(max_size=9) | some.lists(some.integers() | some.text(max_size=3), max_size=3)
NESTED = some.dictionaries(some.text(max_size=3), VALUES, max_size=3)


@given(some.dictionaries(some.text(max_size=3), VALUES | NESTED, max_size=4), some.data())
def test_the_begin_of_json_is_a_part_of_it(value: Any, data: some.DataObject) -> None:
    text = json.dumps(value)
    begun = begin_of(text[: data.draw(some.integers(0, len(text) - 1))])
    assert begun is None or is_part(begun, value)


def is_part(some_of: Any, whole: Any) -> bool:
    if isinstance(some_of, dict):
        return isinstance(whole, dict) and all(is_part(one, whole[key]) for key, one in some_of.items())
    if isinstance(some_of, list):
        return isinstance(whole, list) and all(map(is_part, some_of, whole))
    return whole.startswith(some_of) if isinstance(some_of, str) else some_of == whole


def test_a_fence_says_nothing() -> None:
    assert all(map(says_nothing, ["", "```", "> ```java", "~~~ text", ">", "> >"]))
    assert not any(map(says_nothing, ["`x`", "``` it hangs", ">>>>> maybe", "-"]))


@pytest.mark.parametrize("sql", ["select { from orders", "select '{' from orders where a = '{{'", "}} {"])
def test_braces_in_a_text_are_no_ends(sql: str) -> None:
    texts = {sql, "select 1 from orders", f"{sql} limit 2"}
    log = "\n".join(json.dumps({**SQL, "sql": text}) for text in texts)
    assert {one.at.sql for one in issues_of(log) if isinstance(one, ImportedFinding)} == texts
