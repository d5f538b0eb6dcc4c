"""The page of what `loopcanary methods` traced."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from tests.building.stalls import BEGAN, HOSTILE, MS, SESSION, S, frame
from tests.ui.test_report import sound

from loopcanary.model.calls import Recording, ThreadCalls, TracedCall, TracedCalls, TracedWork
from loopcanary.ui.document import bundle, document
from loopcanary.ui.pages.calls import calls_page


def thread(tid: int, name: str, *calls: tuple[str, int, int], left_out: int = 0) -> ThreadCalls:
    """With calls of (function, depth, ms)."""
    rows = tuple(
        TracedCall(
            frame=frame(function, f"/srv/{function}.py", 1, in_app=True),
            depth=depth,
            calls=3,
            total_ns=ms * MS,
            self_ns=ms * MS // 2,
        )
        for function, depth, ms in calls
    )
    return ThreadCalls(tid=tid, thread=name, loop="asyncio", calls=TracedCalls(rows=rows, left_out=left_out))


def recording(*threads: ThreadCalls) -> Recording:
    return Recording(session=SESSION, began_wall_ns=BEGAN, duration_ns=2 * S, threads=threads)


def test_threads_come_by_the_time_of_their_calls():
    page = calls_page(
        recording(thread(1, "short", ("a", 0, 10)), thread(2, "long", ("b", 0, 30), ("c", 0, 20)))
    )
    assert [(one.name, one.took_ns) for one in page.threads] == [
        ("long (asyncio)", 50 * MS),
        ("short (asyncio)", 10 * MS),
    ]


def test_shares_are_those_of_all_calls_of_the_thread():
    [part] = calls_page(recording(thread(1, "main", ("a", 0, 30), ("b", 1, 20), ("c", 0, 10)))).threads
    assert [one.share for one in part.tree.branches] == [0.75, 0.25]
    assert part.tree.flame is not None
    assert (part.tree.flame["name"], part.tree.flame["value"]) == ("traced calls", 40 * MS)
    assert [one.words for one in part.tree.functions] == ["a", "b", "c"]


def test_one_file_has_graph_functions_and_paths():
    found = recording(thread(7, "main", ("load", 0, 30), ("parse", 1, 20), left_out=12))
    page = sound(document(calls_page(found), "/srv"))
    for words in (
        "calls took 30.0 ms, 1.5 % of the time",
        "By function",
        "By path",
        "and 12 short rows",
        "parse.py:1",
    ):
        assert words in page.text
    [flame] = page.contents["json"]
    assert [one["name"] for one in json.loads(flame)["children"]] == ["load"]
    assert page.policy == bundle().content_policy


def test_several_callbacks_and_tasks_are_listed():
    one = thread(7, "main", ("load", 0, 40))
    work = (
        TracedWork(name="worker", task="<north>", times=3, total_ns=30 * MS),
        TracedWork(name="", times=1_500, total_ns=10 * MS),
    )
    calls = replace(one.calls, work=work)
    page = calls_page(recording(replace(one, calls=calls)))
    assert [(row.words, row.share) for row in page.threads[0].tree.work] == [
        ("worker (task <north>)", 0.75),
        ("other work", 0.25),
    ]
    text = sound(document(page, "/srv")).text
    assert all(words in text for words in ("By callback and task", "worker (task <north>)", "1,500"))
    alone = replace(one, calls=replace(calls, work=work[:1]))
    assert not calls_page(recording(alone)).threads[0].tree.work


def test_nothing_called_is_said():
    page = sound(document(calls_page(replace(recording(), notices=("process 5 has ended",))), "/srv"))
    assert "None of the chosen functions was called" in page.text
    assert "process 5 has ended" in page.text


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_names_are_text(text: str):
    found = recording(replace(thread(1, text, (text, 0, 10)), loop=text))
    session = replace(SESSION, name=text)
    page = sound(document(calls_page(replace(found, session=session, notices=(text,))), "/srv"))
    assert "By path" in page.text
