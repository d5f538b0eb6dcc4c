"""What a loop ran before a stall is told with the stall: by name, in order, and the rest by count."""

from __future__ import annotations

import importlib.util
import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from .test_killed import NS_PER_S, finish, only_stall, wait_for_hang
from .watching import PROGRAMS, Watched

pytestmark = pytest.mark.native

BEFORE = PROGRAMS / "before.py"
LONG_MS = 20
BURST = 40


@dataclass(frozen=True, slots=True)
class Story:
    """Names (with tasks) of the long work in order, and the stalled callback."""

    loop: str
    work: tuple[tuple[str, str | None], ...]
    stalled: str


OF_ASYNCIO = (
    ("refresh", None),
    ("Orders.load", "orders"),
    ("Orders.load", "orders"),
    ("Cache.sweep", None),
    ("once", "last"),
)
STORIES = [
    Story("asyncio", OF_ASYNCIO, "blocker"),
    Story(
        "trio",
        (
            ("under_trio.<locals>.load", "task of load"),
            ("under_trio.<locals>.load", "task of load"),
            ("once", "task of once"),
        ),
        "blocker",
    ),
    Story(
        "gevent",
        (("refresh", None), ("under_gevent.<locals>.load", None), ("under_gevent.<locals>.load", None)),
        "stall",
    ),
    Story("watch", (("first job", None), ("second job", None), ("third job", None)), "bad"),
]
every_loop = pytest.mark.parametrize("story", STORIES, ids=[story.loop for story in STORIES])


def need(loop: str) -> None:
    if loop in {"trio", "gevent"} and importlib.util.find_spec(loop) is None:
        pytest.skip(f"{loop} is not installed")


def named(stall: dict[str, Any], story: Story) -> list[dict[str, Any]]:
    """The work of the program's own: a busy machine makes others long, too."""
    names = {name for name, _ in story.work}
    return [work for work in stall["timeline"]["earlier"] if work["name"] in names]


def check(stall: dict[str, Any], story: Story) -> None:
    earlier = stall["timeline"]["earlier"]
    found = named(stall, story)
    assert [(work["name"], work["task"]) for work in found] == list(story.work)
    assert all(work["kind"] == "callback" and work["length_ms"] >= LONG_MS for work in found)
    ends = [work["ago_ms"] - work["length_ms"] for work in found]
    assert all(end >= after["ago_ms"] for end, after in zip(ends, found[1:], strict=False))
    assert ends[-1] >= 0
    # Short, or long because they were not let run: each was one callback.
    told, turn = stall["timeline"]["earlier_last"]["callbacks"], None
    for work in earlier:
        if turn is not None and work["ago_ms"] - work["length_ms"] >= turn["ago_ms"] - turn["length_ms"]:
            continue
        told += work["callbacks"] + work["short_callbacks"]
        turn = work if work["kind"] == "turn" else None
    assert told >= BURST + len(story.work)
    assert stall["timeline"]["earlier_from_ms"] >= earlier[0]["ago_ms"]


@every_loop
def test_long_work_before_a_stall_has_names_and_order(watched: Callable[..., Watched], story: Story):
    need(story.loop)
    under = watched()
    under.run(BEFORE, story.loop)
    stalls = under.report()["stalls"]
    [stall] = [one for one in stalls if one["callback"]["name"] == story.stalled]
    check(stall, story)


def test_a_killed_process_leaves_its_history_behind(watched: Callable[..., Watched]):
    under, story = watched(), STORIES[0]
    program = under.start(BEFORE, story.loop, "hang", stdin=subprocess.PIPE)
    try:
        assert program.stdout is not None
        assert program.stdout.readline() == "ready\n"
        wait_for_hang(under, program, NS_PER_S // 5)
        finish(program)
    finally:
        program.kill()
        program.wait()
        for stream in (program.stdin, program.stdout):
            assert stream is not None
            stream.close()
    stall = only_stall(under.report())
    assert stall["state"] == "killed"
    check(stall, story)
    shown = under.tool("show", stall["id"]).stdout
    assert "shortly before" in shown
    assert shown.index("Orders.load, task orders") < shown.index("once, task last")
    traced = json.loads(under.tool("export", "--format", "chrome").stdout)
    callbacks = [event["name"] for event in traced["traceEvents"] if event.get("cat") == "callback"]
    # On a busy machine a step of the program itself may take long, too.
    assert [name for name in callbacks if name in {name for name, _ in story.work}][-1] == "once"
