from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest
from tests.building.issues import ISSUES
from tests.building.stalls import HOSTILE, SESSION, STALL, hostile_stall

from loopcanary.reporters.log_file import LogFile


def log(path: Path) -> LogFile:
    return LogFile(path, process="shop", host="here")


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_stall_is_one_line_of_json(tmp_path):
    path = tmp_path / "log.jsonl"
    reporter = log(path)
    assert not path.exists()
    reporter.report(replace(STALL, scene="checkout"), 3)
    reporter.close(SESSION, [])
    (line,) = lines(path)
    assert line == {
        "at": "2023-11-14T22:13:20.000Z",
        "kind": "stall",
        "id": "s1-1",
        "fingerprint": "1:f00d",
        "repeated": 3,
        "title": "json.loads(body) in load_orders (orders.py:87)",
        "duration_ms": 412.346,
        "cause": "native-cpu",
        "file": "/srv/shop/orders.py",
        "line": 87,
        "function": "Orders.load_orders",
        "scene": "checkout",
        "thread": "MainThread",
        "loop": "asyncio",
        "pid": 41,
        "advice": STALL.advice,
        "state": "ended",
        "severity": "stall",
        "confidence": 0.9,
        "task": "Task-17",
        "callback": "handle",
        "program": "shop",
        "host": "here",
    }
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert reporter.counts() == {}


def test_issues_of_every_kind_are_lines(tmp_path):
    reporter = log(tmp_path / "log")
    for issue in ISSUES:
        reporter.report(issue, 0)
    assert [line["kind"] for line in lines(tmp_path / "log")] == [issue.kind.value for issue in ISSUES]


@pytest.mark.parametrize("text", HOSTILE)
def test_no_name_breaks_a_line(tmp_path, text):
    reporter = log(tmp_path / "log")
    reporter.report(hostile_stall(text), 0)
    reporter.report(STALL, 0)
    assert len(lines(tmp_path / "log")) == 2
    assert (tmp_path / "log").read_bytes().isascii()


def test_a_file_that_was_moved_away_is_begun_anew(tmp_path):
    reporter = log(tmp_path / "log")
    reporter.report(STALL, 0)
    (tmp_path / "log").rename(tmp_path / "taken")
    reporter.report(STALL, 1)
    assert lines(tmp_path / "log")[0]["repeated"] == 1


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names here")
def test_a_pipe_without_a_reader_does_not_block(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reporter = log(tmp_path / "pipe")
    reporter.report(STALL, 0)
    with os.fdopen(os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK), "rb") as reader:
        reporter.report(STALL, 0)
        assert reader.read() == b""
    assert reporter.counts() == {"log_file_dropped": 2}


def test_a_folder_that_is_not_there_is_counted(tmp_path):
    reporter = log(tmp_path / "none" / "log")
    reporter.report(STALL, 0)
    assert reporter.counts() == {"log_file_dropped": 1}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_device_is_refused():
    reporter = log(Path("/dev/full"))
    reporter.report(STALL, 0)
    assert reporter.counts() == {"log_file_dropped": 1}


def test_processes_that_share_a_file_lose_no_line(tmp_path):
    program = """
        import sys
        from dataclasses import replace
        from pathlib import Path
        from tests.building.stalls import STALL
        from loopcanary.reporters.log_file import LogFile
        reporter = LogFile(Path(sys.argv[1]), process="p", host="h")
        print("ready", flush=True)
        sys.stdin.readline()
        for number in range(100):
            reporter.report(replace(STALL, id=f"{sys.argv[2]}-{number}"), 0)
        print(reporter.counts())
    """
    path = tmp_path / "log"
    tree = Path(__file__).parents[2]
    command = [sys.executable, "-c", textwrap.dedent(program), str(path)]
    children = [
        subprocess.Popen([*command, name], cwd=tree, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for name in "abc"
    ]
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    for child in children:
        assert child.communicate(timeout=280)[0] == "{}\n"
    found = [line["id"] for line in lines(path)]
    for name in "abc":
        assert [one for one in found if one.startswith(name)] == [f"{name}-{number}" for number in range(100)]
