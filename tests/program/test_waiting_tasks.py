"""What tasks wait for is looked at without being asked, and tasks that wait for each other are told while
they do, with nothing patched. The programs run side by side: a look is taken every five seconds."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from loopcanary import outside
from loopcanary.assembly.dump import look_at
from loopcanary.document import markdown
from loopcanary.model.outside import ProcessSight
from loopcanary.report.dump import dump_document

from .watching import GIVES_UP_S, PROGRAMS, Watched

WAITING = PROGRAMS / "waiting.py"
DEADLOCKS = {
    "two_locks": {"pay", "refund"},
    "two_locks_beside_work": {"pay", "refund"},
    "lock_and_task": {"Task-1", "child"},
    "nested_managers": {"Task-2", "Task-3"},
}
OTHERS = (
    "within_a_timeout",
    "within_a_scope",
    "without_work",
    "held_for_long",
    "let_go_for_a_while",
    "enters_a_manager",
)
WAITS = {
    "without_work": "wait for an item of an asyncio.Queue",
    "held_for_long": "waits for a timer (asyncio.sleep)",
    "two_locks": "wait for asyncio.Locks that pay, refund hold",
}

ASKED = {
    ("two_locks",): (0, ["pay", "refund"]),
    ("two_locks", "--deadlocks"): (1, ["pay", "refund"]),
    ("lock_and_task",): (1, ["Task-1", "child"]),
    ("held_for_long", "--deadlocks"): (0, []),
}

pytestmark = [pytest.mark.native, pytest.mark.xdist_group("waiting tasks")]


@dataclass(frozen=True, slots=True)
class Seen:
    living: dict[str, dict[str, Any]]
    """Sessions of the report while all programs ran, by name."""
    dead: dict[str, dict[str, Any]]
    """The same after SIGKILL."""
    deadlocks: dict[str, list[dict[str, Any]]]
    judged: dict[str, list[dict[str, Any]]]
    """Those of programs that judged themselves."""
    health: dict[tuple[str, ...], tuple[int, dict[str, Any]]]
    """Exit status and answer of `loopcanary health` with these words."""
    refused: str
    """The dump of `without_work` where its memory may not be read."""


def by_name(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {session["name"]: session for session in report["sessions"]}


def deadlocks_in(report: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    names = {session["id"]: session["name"] for session in report["sessions"]}
    found: dict[str, list[dict[str, Any]]] = {}
    for issue in report["issues"]:
        if issue["kind"] == "deadlock":
            found.setdefault(names[issue["session"]], []).append(issue)
    return found


def was_looked_at_twice(session: dict[str, Any]) -> bool:
    survey = session["survey"]
    return survey is not None and any(group["since_at"] < survey["taken_at"] for group in survey["groups"])


def until_told(watched: Watched, names: set[str]) -> dict[str, Any]:
    deadline = time.monotonic() + GIVES_UP_S
    while True:
        report = watched.report()
        sessions = by_name(report)
        is_over = names <= sessions.keys() and all(map(was_looked_at_twice, sessions.values()))
        wanted = names - {*OTHERS}
        if (is_over and deadlocks_in(report).keys() >= wanted) or time.monotonic() > deadline:
            return report
        time.sleep(0.5)


def health_of(watched: Watched, *words: str) -> tuple[int, dict[str, Any]]:
    command = [sys.executable, "-m", "loopcanary", "health", "--format", "json", *words]
    done = subprocess.run(command, env=watched.environment(), capture_output=True, text=True, check=False)
    (program,) = json.loads(done.stdout)["programs"]
    return done.returncode, program


def kept_look(pid: int) -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(outside.Memory, "__enter__", refuse)
        sight = look_at(pid, with_tasks=True)
    assert isinstance(sight, ProcessSight), sight
    return markdown.render(dump_document(sight, everything=False))


def refuse(_memory: outside.Memory) -> outside.Memory:
    raise outside.NotReadableError("refused")


def end(programs: list[subprocess.Popen[str]]) -> None:
    for program in programs:
        program.kill()
    for program in programs:
        program.communicate()


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    kept = Watched(store=tmp_path_factory.mktemp("kept") / "store", engine="native")
    judging = Watched(store=tmp_path_factory.mktemp("judging") / "store", engine="native")
    names = {*DEADLOCKS, *OTHERS}
    started = {name: kept.start(WAITING, name, variables={"LOOPCANARY_NAME": name}) for name in names}
    programs = [*started.values()]
    itself = {"LOOPCANARY_NAME": "itself", "LOOPCANARY_KEEPER": "0"}
    programs.append(judging.start(WAITING, "two_locks", variables=itself))
    try:
        living = until_told(kept, names)
        judged = until_told(judging, {"itself"})
        refused = kept_look(started["without_work"].pid)
        health = {(name, *words): health_of(kept, str(started[name].pid), *words) for name, *words in ASKED}
    finally:
        end(programs)
    dead = kept.report()
    return Seen(by_name(living), by_name(dead), deadlocks_in(dead), deadlocks_in(judged), health, refused)


@pytest.mark.parametrize("name", DEADLOCKS)
def test_tasks_that_wait_for_each_other_are_told_once(seen: Seen, name: str):
    (issue,) = seen.deadlocks[name]
    assert {wait["task"] for wait in issue["cycle"]} == DEADLOCKS[name]
    assert issue["cause"] == "lock"
    assert Path(issue["culprit"]["file"]).name == "waiting.py"
    assert issue["advice"]


@pytest.mark.parametrize("name", OTHERS)
def test_tasks_that_somebody_may_wake_are_in_no_deadlock(seen: Seen, name: str):
    assert name in seen.living
    assert name not in seen.deadlocks


def test_a_program_that_judges_itself_tells_them_too(seen: Seen):
    (issue,) = seen.judged["itself"]
    assert {wait["task"] for wait in issue["cycle"]} == {"pay", "refund"}


@pytest.mark.parametrize("words", ASKED, ids=" ".join)
def test_health_fails_if_the_main_task_waits_in_a_deadlock_or_is_asked_of_any(
    seen: Seen, words: tuple[str, ...]
):
    status, program = seen.health[words]
    assert (status, program["deadlock"], program["healthy"]) == (*ASKED[words], status == 0)


@pytest.mark.parametrize("name", WAITS)
@pytest.mark.parametrize("when", ["living", "dead"])
def test_the_report_says_what_tasks_wait_for(seen: Seen, name: str, when: str):
    survey = getattr(seen, when)[name]["survey"]
    assert WAITS[name] in [group["waits"] for group in survey["groups"]]


def test_a_program_that_is_interrupted_leaves_the_look_from_before(watched):
    kept = watched()
    named = {"LOOPCANARY_NAME": "without_work"}
    program = kept.start(WAITING, "without_work", variables=named, stderr=subprocess.DEVNULL)
    until_told(kept, {"without_work"})
    program.send_signal(signal.SIGINT)
    program.communicate(timeout=GIVES_UP_S)
    (session,) = kept.report()["sessions"]
    assert session["end"] == "exit"
    assert [group["count"] for group in session["survey"]["groups"]] == [1, 20]


def test_where_memory_may_not_be_read_the_watchdog_s_look_is_shown(seen: Seen):
    for words in ("21 tasks of asyncio", WAITS["without_work"], "this is what its watchdog saw"):
        assert words in seen.refused
