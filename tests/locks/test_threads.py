"""Circles over tasks and the threads that work for them, in programs of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from .test_programs import GIVES_UP_S, clean
from .thread_stories import CIRCLES

PROGRAM = Path(__file__).with_name("thread_stories.py")
LAST = ["last a", "last b"]


def told_by(family: str, folder: Path, count: int) -> dict[str, list[dict[str, object]]]:
    """The circles, by the names in them, when so many were told, or the last; the program is killed then."""
    store = str(folder / "store")
    options = ["--locks", "--store", store, str(PROGRAM), family]
    with subprocess.Popen(
        [sys.executable, "-m", "loopcanary", "run", *options],
        cwd=folder,
        env=clean(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stderr is not None
        said = []
        for line in child.stderr:
            said += [line] if "wait for each other" in line else []
            if len(said) == count or LAST[0] in line:
                break
        child.kill()
    report = subprocess.run(
        [sys.executable, "-m", "loopcanary", "report", "--store", store, "--format", "json", "--limit", "0"],
        cwd=folder,
        env=clean(),
        capture_output=True,
        text=True,
        check=True,
        timeout=GIVES_UP_S,
    )
    issues = [one for one in json.loads(report.stdout)["issues"] if one["kind"] == "deadlock"]
    assert len(issues) == len(said)
    return {", ".join(wait["task"] for wait in issue["cycle"]): issue["cycle"] for issue in issues}


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_a_thread_that_asks_its_loop_is_in_the_circle(tmp_path, loop):
    pytest.importorskip(loop)
    found = told_by(f"{loop}-circles", tmp_path, len(CIRCLES))
    names = {
        story.__name__: [f"{story.__name__} {does}" for does in ("asks", "needs", "holds")]
        for story in CIRCLES
    }
    names["joins"].append("joins joins")
    names["of_another_pool"].append("of_another_pool submits")
    assert found.keys() == {", ".join(each) for each in names.values()}
    thread, needs, holds = found[", ".join(names["default_pool"])]
    assert (thread["is_thread"], needs["is_thread"], holds["is_thread"]) == (True, False, False)
    assert (thread["waits_for"], needs["waits_for"]) == ("the task default_pool needs", "Lock 'Story.lock'")
    assert (holds["holds"], holds["waits_for"]) == ("Lock 'Story.lock'", "the thread default_pool asks")
    functions = [frame["function"] for frame in thread["frames"] if frame["in_app"]]
    assert functions == ["<lambda>", "named", "asks"]


@pytest.mark.parametrize(
    ("family", "circles"),
    [
        ("anyio_on_asyncio", {"by portal", "by run"}),
        ("anyio_on_trio", {"by portal"}),
        ("trio", {"holds"}),
    ],
)
def test_a_thread_of_anyio_or_trio_is_in_the_circle(tmp_path, family, circles):
    found = told_by(f"{family}-circles", tmp_path, len(circles))
    holders = {wait["task"] for cycle in found.values() for wait in cycle if wait["holds"]}
    assert holders == circles
    assert all([wait["is_thread"] for wait in cycle].count(True) == 1 for cycle in found.values())


@pytest.mark.parametrize("family", ["asyncio", "anyio_on_asyncio", "anyio_on_trio", "trio"])
def test_a_thread_that_works_or_gives_up_is_in_none(tmp_path, family):
    assert list(told_by(f"{family}-controls", tmp_path, 1)) == [", ".join(LAST)]
