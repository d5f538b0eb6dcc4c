"""`loopcanary export` and the HTML report of real programs whose calls were traced."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from typing import Any

import pytest
from tests.exporters.conftest import need
from tests.exporters.readers import READERS, pprof_profile
from tests.methods.test_programs import GIVES_UP_S, Program, wait_until_sampled, with_calls
from tests.program.watching import PROGRAMS

pytestmark = pytest.mark.native
SCRIPT = (
    f"""
sys.path.insert(0, {str(PROGRAMS)!r})
from blocking import until_sampled
"""
    """
def parse(text):
    return text.split(",")

def load():
    for _ in range(300):
        parse("a,b")

def hang():
    for seconds in until_sampled(0.3):
        time.sleep(seconds)
    print("in it", flush=True)
    time.sleep(SLEEP_S)

def work():
    load()
    load()
    stall()
    hang()

loop(work)
"""
)
FORMS = ("chrome", "collapsed", "firefox", "perfetto", "pprof", "speedscope")


@pytest.fixture(scope="module", params=["ended", "killed"])
def ran(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Program:
    """A program that ended, and one that was killed in its hang."""
    program = Program(tmp_path_factory.mktemp(request.param))
    is_killed = request.param == "killed"
    script = f"SLEEP_S = {600 if is_killed else 0}\n{SCRIPT}"
    with program.start(script, "--methods", ".", "--slow-method", "100ms") as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "in it\n"
        if is_killed:
            wait_until_sampled(program)
            running.send_signal(signal.SIGKILL)
        running.communicate(timeout=GIVES_UP_S)
    return program


def command(program: Program, *arguments: str) -> bytes:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("LOOPCANARY")}
    line = (sys.executable, "-m", "loopcanary", *arguments)
    return subprocess.run(line, cwd=program.folder, env=clean, capture_output=True, check=True).stdout


def exported(program: Program, form: str) -> tuple[dict[str, Any], bytes]:
    """The stall as the report has it, and its export."""
    need(form)
    [stall] = with_calls(program.stalls())
    return stall, command(program, "export", "--format", form, "--stall", stall["id"])


@pytest.mark.parametrize("form", FORMS)
def test_a_reader_takes_the_export(ran: Program, form: str) -> None:
    stall, data = exported(ran, form)
    assert READERS[form](data) == pytest.approx(stall["duration_ms"] * 1e6, rel=1e-6)


def test_slices_are_the_rows_of_the_report(ran: Program) -> None:
    stall, data = exported(ran, "chrome")
    events = json.loads(data)["traceEvents"]
    [track] = [one["tid"] for one in events if one["args"].get("name") == "exact calls, merged by path"]
    slices = [one for one in events if one["tid"] == track and one["ph"] == "X"]
    rows = stall["calls"]["rows"]
    assert [(one["name"], one["args"]["calls"], one["args"].get("returned", True)) for one in slices] == [
        (row["qualname"], row["calls"], not row["open"]) for row in rows
    ]
    for one, row in zip(slices, rows, strict=True):
        assert one["dur"] == pytest.approx(row["total_ms"] * 1_000, abs=10)
    still_open = [one["name"] for one in slices if not one["args"].get("returned", True)]
    assert (still_open[-1] == "hang") == (stall["state"] == "killed")


def test_pprof_counts_each_call(ran: Program) -> None:
    stall, data = exported(ran, "pprof")
    profile = pprof_profile(data)
    names = {one.id: profile.string_table[one.name] for one in profile.function}
    functions = {one.id: names[one.line[0].function_id] for one in profile.location}
    calls = {functions[one.location_id[0]]: one.value[2] for one in profile.sample if one.value[2]}
    assert (calls["load"], calls["parse"], calls["stall"], calls["hang"]) == (2, 600, 1, 1)
    rows_ns = sum(row["self_ms"] for row in stall["calls"]["rows"]) * 1e6
    assert sum(one.value[3] for one in profile.sample) == pytest.approx(rows_ns, abs=10_000)


def test_the_html_report_has_the_flame_graph_of_the_calls(ran: Program) -> None:
    page = command(ran, "report", "--format", "html").decode()
    told = [
        json.loads(text)
        for text in re.findall(
            r'<script type="application/json" id="b\d+-calls-flame-data">(.*?)</script>', page
        )
    ]
    counts: dict[str, int] = {}
    waiting = list(told)
    while waiting:
        node = waiting.pop()
        counts[node["name"]] = node.get("calls", 0)
        assert sum(one["value"] for one in node["children"]) <= node["value"]
        waiting += node["children"]
    assert (counts["load"], counts["parse"], counts["hang"]) == (2, 600, 1)
