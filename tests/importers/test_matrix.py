"""loopcanary import of what Matrix's TraceCanary reports."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some
from tests.building.stalls import SESSION, STALL
from tests.importers.logs import WATCHDOG, block, logcat

from loopcanary.cli import main
from loopcanary.importers import matrix
from loopcanary.importers.matrix_calls import DISPATCH
from loopcanary.model import Jank, StackFrame, Stall
from loopcanary.model.calls import TracedCall, TracedCalls
from loopcanary.model.search import OTHERS, STALLS, IssueQuery
from loopcanary.protocols.imports import Line
from loopcanary.store import Retention, Store

MS = 1_000_000
KEPT = Retention(age_ns=1 << 62)
Captured = pytest.CaptureFixture[str]
STACK = f"0,{DISPATCH},1,805\n1,7,1,800\n2,8,2,45\n"
MAPPING = """\
7,1,com.example.shop.MainActivity onClick (Landroid.view.View;)V
8,0,com.example.shop.Orders load ()V
1048574,1,android.os.Handler dispatchMessage (Landroid.os.Message;)V
"""
ISSUE = {
    "machine": "MIDDLE",
    "cpu_app": 5.9e-5,
    "mem": 4_000_000_000,
    "mem_free": 404_360,
    "detail": "NORMAL",
    "cost": 805,
    "usage": "12.50%",
    "scene": "com.example.shop.MainActivity",
    "stack": STACK,
    "stackKey": "7|",
    "tag": "Trace_EvilMethod",
    "process": "com.example.shop",
    "time": 1_540_000_000_000,
}
FPS = {
    "scene": "com.example.shop.MainActivity",
    "dropLevel": {
        "DROPPED_FROZEN": 0,
        "DROPPED_HIGH": 0,
        "DROPPED_MIDDLE": 3,
        "DROPPED_NORMAL": 14,
        "DROPPED_BEST": 451,
    },
    "dropSum": {
        "DROPPED_FROZEN": 0,
        "DROPPED_HIGH": 0,
        "DROPPED_MIDDLE": 41,
        "DROPPED_NORMAL": 57,
        "DROPPED_BEST": 108,
    },
    "fps": 46.38,
    "tag": "Trace_FPS",
    "process": "com.example.shop",
    "time": 1_540_000_000_000,
}


def written(name: str, text: str) -> str:
    Path("in", name).write_text(text)
    return f"in/{name}"


def taken(*args: str) -> list[Stall]:
    assert main(["import", *args, "--store", "s"]) == 0
    store = Store(Path("s"), retention=KEPT)
    try:
        return list(store.reader.each(STALLS))
    finally:
        store.close()


def printed() -> str:
    """As the sample app prints an issue."""
    head = ["ISSUE Time Stamp: 2018 \N{CJK UNIFIED IDEOGRAPH-5E74}", "ISSUE TAG: Trace_EvilMethod"]
    return "\n".join([*head, "ISSUE KEY: null", "ISSUE Content:", *keys()]) + "\n"


def listed(head: str) -> str:
    """Keys and values alone."""
    return head + "\n".join(keys()) + "\n"


def keys() -> Iterator[str]:
    for key, value in ISSUE.items():
        first, *more = str(value).rstrip().split("\n")
        yield from (f"\t\t\t{key} : {first}", *more)


WRAPPED = json.dumps(ISSUE, indent=1)
FORMS = {
    "json": json.dumps(ISSUE),
    "many lines": WRAPPED,
    "tag": f"tag[Trace_EvilMethod]type[0];key[null];content[{json.dumps(ISSUE)}]",
    "printed": printed(),
    "logcat": logcat(f"tag[Trace_EvilMethod]type[null];key[7|];content[{json.dumps(ISSUE)}]", "Matrix"),
    "the sample's page": listed("tag : Trace_EvilMethod\ntype : 0\nkey : null\ncontent :\n"),
    "a listener of the app's own": logcat(listed("*" * 27 + "\n"), "MatrixListener"),
    "cut by logcat": logcat("\n".join([json.dumps(ISSUE)[:200], json.dumps(ISSUE)[200:]]), "Matrix"),
}


def test_a_method_without_its_stack_is_a_stall() -> None:
    """As some versions write it (Tencent/matrix#560)."""
    written("issue.txt", json.dumps({**ISSUE, "stack": "", "stackKey": ""}))
    (stall,) = taken("in")
    assert stall.duration_ns == 805 * MS
    assert stall.culprit is None


@pytest.mark.parametrize("form", FORMS)
def test_an_evil_method_in_every_form(form: str) -> None:
    written("issue.txt", FORMS[form])
    written("methodMapping.txt", MAPPING)
    (stall,) = taken("in")
    assert stall.duration_ns == 805 * MS
    assert stall.ledger.on_cpu_ns == 100_625_000
    assert stall.scene == "com.example.shop.MainActivity"
    assert stall.calls is not None
    rows = [(row.depth, row.frame.qualname, row.calls, row.total_ns // MS) for row in stall.calls.rows]
    assert rows == [
        (0, "Handler.dispatchMessage", 1, 805),
        (1, "MainActivity.onClick", 1, 800),
        (2, "Orders.load", 2, 45),
    ]
    assert stall.calls.rows[1].self_ns == 755 * MS
    assert stall.culprit is not None
    assert (stall.culprit.qualname, stall.culprit.in_app) == ("MainActivity.onClick", True)
    paths = [([frame.function for frame in one.frames], one.weight_ns // MS) for one in stall.stacks]
    assert paths[:2] == [
        (["onClick", "dispatchMessage"], 755),
        (["load", "onClick", "dispatchMessage"], 45),
    ]


@pytest.mark.parametrize(
    "text", [STACK, "".join(f"{'.' * i} {i + 3} 1 9\n".replace(". ", ".") for i in range(3))]
)
def test_rows_alone(text: str) -> None:
    (stall,) = taken(written("rows.txt", text.replace(" 3 1 9", "3 1 9", 1)))
    assert stall.calls is not None
    assert len(stall.calls.rows) == 3


def test_what_is_printed_to_logcat() -> None:
    text = (
        ">>>>>>>>>>>>>>>>>>>>> maybe happens Jankiness!(805ms) <<<<<<<<<<<<<<<<<<<<<\n|* [Status]\n"
        "|*\t\tScene: com.example.shop.MainActivity\n|* TraceStack:\n|*\t\t[id count cost]\n"
        "|*\t\t1048574 1 805\n|*\t\t.7 1 800\n|*\t\t..8 2 45\n|*====\n"
    )
    (stall,) = taken(written("log.txt", logcat(text, "Matrix.EvilMethodTracer")))
    assert (stall.duration_ns, stall.scene) == (805 * MS, "com.example.shop.MainActivity")


def test_a_mapping_of_another_build_is_noticed() -> None:
    written("issue.txt", FORMS["json"])
    written("map.txt", MAPPING.splitlines()[1] + "\n")
    (stall,) = taken("in")
    assert "1 of 2 methods are not in the methodMapping" in stall.evidence[-1]


def test_ids_without_a_mapping_are_kept() -> None:
    (stall,) = taken(written("issue.txt", FORMS["json"]))
    assert stall.title == "blocked in ?7"
    assert stall.evidence[-1].startswith("2 methods without a name")


@pytest.mark.parametrize(
    "line", ["com.example.shop.Orders.load(Orders.java:42)", " at com.example.shop.Orders:load(42)"]
)
def test_a_lag_has_a_stack_and_no_end(line: str) -> None:
    issue = {"detail": "LAG", "threadStack": f" \nat java.lang.Thread:sleep(-2)\n{line}\n", "tag": "x"}
    (stall,) = taken(written("lag.json", json.dumps(issue)))
    assert stall.duration_ns == 2_000 * MS
    assert stall.culprit is not None
    assert (stall.culprit.qualname, stall.culprit.line) == ("Orders.load", 42)


def test_frames_of_a_scene(capsys: Captured) -> None:
    assert main(["import", written("fps.json", json.dumps(FPS)), "--store", "s"]) == 0
    assert "1 other issue" in capsys.readouterr().out
    store = Store(Path("s"), retention=KEPT)
    (jank,) = store.reader.issues(OTHERS)
    (session,) = store.reader.sessions(IssueQuery())
    store.close()
    assert isinstance(jank, Jank)
    assert jank.figures.drop_level == (451, 14, 3, 0, 0)
    assert jank.figures.drop_sum == (108, 57, 41, 0, 0)
    (scene,) = session.traces.frames
    assert (scene.scene, scene.figures) == (jank.scene, jank.figures)
    assert jank.figures.worst_ns == 15 * 16_666_667
    assert "46.4" in jank.title
    assert main(["show", jank.id, "--store", "s"]) == 0


def test_what_is_exported_comes_back_the_same() -> None:
    frames = [
        StackFrame(function=name, qualname=name, file=f"/app/{name}.py", line=1, in_app=True)
        for name in ("outer", "inner")
    ]
    calls = TracedCalls(
        rows=(
            TracedCall(frame=frames[0], depth=0, calls=1, total_ns=200 * MS, self_ns=50 * MS),
            TracedCall(frame=frames[1], depth=1, calls=3, total_ns=150 * MS, self_ns=150 * MS),
        )
    )
    store = Store(Path("own"), retention=KEPT)
    store.put([SESSION], [replace(STALL, calls=calls)])
    store.close()
    assert main(["export", "--format", "matrix", "--store", "own", "-o", "in/out.json"]) == 0
    (stall,) = taken("in/out.json")
    assert stall.calls is not None
    rows = [(row.depth, row.frame.function, row.calls, row.total_ns) for row in stall.calls.rows]
    assert rows[1:] == [(1, "outer", 1, 200 * MS), (2, "inner", 3, 150 * MS)]
    assert stall.duration_ns == STALL.duration_ns // MS * MS


PIECES = [*FORMS["printed"].splitlines(), *WRAPPED.splitlines(), json.dumps(ISSUE), json.dumps(FPS)]
PIECES += [
    "{" * 3_000,
    '{"detail": "ANR", "cost": 1e999}',
    '{"stack": 5, "detail": [], "cost": "x"}',
    "0,1,1,9",
]


@given(some.lists(some.one_of(some.sampled_from(PIECES), some.text(max_size=60)), max_size=40))
def test_no_lines_raise(lines: list[str]) -> None:
    numbered = [Line(number, text) for number, text in enumerate(lines, 1)]
    for found in matrix.MATRIX.find(numbered, near_wall_ns=0):
        assert found.lines


def test_a_mixed_logcat_has_all_of_them() -> None:
    text = "\n".join([FORMS["logcat"], logcat(block()), logcat(WATCHDOG, "AndroidRuntime")])
    stalls = taken(written("logcat.txt", text))
    assert {stall.engine for stall in stalls} == {"Matrix", "BlockCanary", "ANR-WatchDog"}
