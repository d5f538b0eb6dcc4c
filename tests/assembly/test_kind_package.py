"""A kind of issue from an installed package: one process reports such an issue, others read it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.assembly import lock_waits

PROGRAM = """
import asyncio
import threading

import lock_waits

async def main():
    with lock_waits.held(threading.Lock(), "orders_lock") as is_reported:
        print(is_reported)

asyncio.run(main())
"""
KEPT = """
import sys
import loopcanary

canary = loopcanary.install()
if canary.kept is None:
    print(canary.no_keeper)
else:
    sys.modules["loopcanary.assembly.kept"].END_PATIENCE_S = 60  # a keeper on a busy host
"""
OWN = "from loopcanary import registry\n{}\n" + KEPT
TRACER = "import lock_waits; registry.REGISTRY.add(registry.TRACERS, 'mine', lock_waits.LockTracer)"
KIND = "import lock_waits; registry.REGISTRY.add(registry.KINDS, 'mine', lock_waits.LockWaitKind)"
REPORTS = """
import time
import lock_waits
[tracer] = lock_waits._RUNNING

def wait(lock, ns=1, holders=()):
    return lock_waits.LockWait(
        began_wall_ns=time.time_ns(), duration_ns=ns, lock=lock, waited_ns=1, holders=holders
    )
"""
NOT_SHOWN = "loopcanary: 1 issue of kind lock-wait is not shown: no installed plugin reads it\n"


class Place:
    """A folder with an installed package, a program and a store."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.site = folder / "site"
        metadata = self.site / "lock_waits-1.dist-info"
        metadata.mkdir(parents=True)
        (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: lock-waits\nVersion: 1\n")
        (metadata / "entry_points.txt").write_text(
            "[loopcanary_tools.kinds]\nlock-wait = lock_waits:LockWaitKind\n\n"
            "[loopcanary.tracers]\nlocks = lock_waits:LockTracer\n"
        )
        shutil.copy(lock_waits.__file__, self.site)
        (folder / "program.py").write_text(PROGRAM)

    def command(
        self, *words: str, is_installed: bool = True, status: int = 0
    ) -> subprocess.CompletedProcess[str]:
        """The command line, in a process of its own."""
        clean = {
            name: value for name, value in os.environ.items() if not name.startswith(("LOOPCANARY", "PYTHON"))
        }
        done = subprocess.run(
            [sys.executable, "-m", "loopcanary", *words],
            env=clean | ({"PYTHONPATH": str(self.site)} if is_installed else {}),
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=280,
        )
        assert done.returncode == status, done.stdout + done.stderr
        return done

    def issues(self) -> list[dict[str, Any]]:
        """Those of the store."""
        found: list[dict[str, Any]] = json.loads(self.command("report", "--format", "json").stdout)["issues"]
        return found


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """One in which the program has run."""
    made = Place(tmp_path_factory.mktemp("kind"))
    assert made.command("run", "--quiet", "program.py").stdout == "True\n"
    return made


@pytest.mark.parametrize("form", ["text", "markdown", "html"])
def test_a_report_for_people_has_it(place: Place, form: str):
    report = place.command("report", "--format", form)
    assert "lock wait of" in report.stdout
    assert report.stderr == ""


def test_the_json_report_has_its_fields(place: Place):
    [issue] = json.loads(place.command("report", "--format", "json").stdout)["issues"]
    assert (issue["kind"], issue["lock"], issue["holders"]) == ("lock-wait", "orders_lock", ["MainThread"])
    assert (issue["thread"], issue["evidence"]) == ("MainThread", ["waited 0 ms for orders_lock"])


def test_show_says_why_it_is_a_bug_of_its_own(place: Place):
    [group] = json.loads(place.command("report", "--format", "json").stdout)["issue_groups"]
    shown = place.command("show", group["fingerprint"]).stdout
    assert "held by" in shown
    assert "grouped  by kind lock-wait, lock orders_lock" in shown


def test_an_export_has_it(place: Place):
    exported = place.command("export", "--format", "jsonl", "--kind", "lock-wait")
    assert json.loads(exported.stdout)["lock"] == "orders_lock"


def test_the_doctor_lists_both_parts_of_the_package(place: Place):
    told = place.command("doctor").stdout
    assert "kind lock-wait" in told
    assert "tracer locks" in told


def test_a_bundle_is_whole_where_the_package_is_missing(place: Place, tmp_path: Path):
    """The store there keeps what it cannot show."""
    bundle, store = str(tmp_path / "some.zip"), str(tmp_path / "other")
    place.command("bundle", "-o", bundle)
    taken = place.command("import", bundle, "--store", store, is_installed=False)
    assert "1 other issue" in taken.stdout
    assert taken.stderr == NOT_SHOWN
    without = place.command("report", "--format", "json", "--store", store, is_installed=False)
    assert (json.loads(without.stdout)["issues"], without.stderr) == ([], NOT_SHOWN)
    [issue] = json.loads(place.command("report", "--format", "json", "--store", store).stdout)["issues"]
    [before] = json.loads(place.command("report", "--format", "json").stdout)["issues"]
    assert issue == before


# ---- with a keeper ------------------------------------------------------------------------------


@pytest.fixture
def kept(tmp_path: Path) -> Place:
    """One in which no program has run."""
    return Place(tmp_path)


def run(kept: Place, program: str, *, status: int = 0) -> subprocess.CompletedProcess[str]:
    (kept.folder / "program.py").write_text(program)
    return kept.command("run", "program.py", status=status)


@pytest.mark.native
@pytest.mark.parametrize("holders", [1, 3_000], ids=["short", "of many notes"])
def test_the_keeper_gets_what_a_package_s_tracer_reports(kept: Place, holders: int):
    report = f"""
assert tracer._desk.report(wait("orders_lock", holders=tuple(f"holder {{n}}" for n in range({holders}))))
assert loopcanary.statistics()["tracer_locks_reported"] == 1
"""
    done = run(kept, KEPT + REPORTS + report)
    assert (done.stdout, "1 lock wait" in done.stderr) == ("", True)
    [issue] = kept.issues()
    assert (issue["kind"], issue["lock"], issue["thread"]) == ("lock-wait", "orders_lock", "MainThread")
    assert issue["holders"] == [f"holder {n}" for n in range(holders)]
    [session] = json.loads(kept.command("report", "--format", "json").stdout)["sessions"]
    assert session["statistics"]["tracer_locks_reported"] == 1


@pytest.mark.native
@pytest.mark.parametrize(
    ("issue", "why"),
    [
        ("'no issue'", "TypeError: a tracer reports issues of registered kinds, not str"),
        (
            "wait('', -1)",
            "ValueError: lock-wait.duration_ns: it is negative",
        ),
        ("wait('', holders=('h' * 99,) * 4_000)", "bytes are more than there is room for"),
    ],
    ids=["none", "unsound", "too large"],
)
def test_what_is_no_issue_is_refused_and_the_next_one_taken(kept: Place, issue: str, why: str):
    done = run(kept, KEPT + REPORTS + f"for one in ({issue}, wait('good')):\n    tracer._desk.report(one)\n")
    [line] = [line for line in done.stderr.splitlines() if "issue of tracer locks failed" in line]
    assert why in line
    assert [issue["lock"] for issue in kept.issues()] == ["good"]


@pytest.mark.native
def test_what_a_killed_program_s_tracer_reported_is_stored(kept: Place):
    report = """
import os, signal
tracer._desk.report(wait("last"))
os.kill(os.getpid(), signal.SIGKILL)
"""
    run(kept, KEPT + REPORTS + report, status=-signal.SIGKILL)
    assert [issue["lock"] for issue in kept.issues()] == ["last"]


@pytest.mark.native
def test_reports_in_a_storm_are_counted(kept: Place):
    report = """
for number in range(40):
    tracer._desk.report(wait(f"{number}"))
statistics = loopcanary.statistics()
print(statistics["tracer_locks_reported"], statistics["tracer_locks_suppressed_storm"])
"""
    assert run(kept, KEPT + REPORTS + report).stdout == "30 10\n"


@pytest.mark.native
def test_interceptors_of_the_program_see_tracers_issues_too(kept: Place):
    report = """
import threading
seen = threading.Event()
@loopcanary.on_issue
def see(issue):
    seen.set()
    return issue
assert tracer._desk.report(wait("seen"))
seen.wait()
loopcanary.stop_tracers()
print([(one.name, one.state.value) for one in loopcanary.list_tracers()], lock_waits._RUNNING)
"""
    assert run(kept, KEPT + REPORTS + report).stdout == "[('locks', 'stopped')] []\n"
    assert [issue["lock"] for issue in kept.issues()] == ["seen"]


@pytest.mark.native
@pytest.mark.parametrize(
    ("own", "part"), [(TRACER, "mine (loopcanary.tracers)"), (KIND, "mine (loopcanary_tools.kinds)")]
)
def test_what_the_program_registers_itself_no_keeper_knows(kept: Place, own: str, part: str):
    done = run(kept, OWN.format(own).replace("canary = loop", "loopcanary.uninstall()\ncanary = loop"))
    assert done.stdout == f"the plugin {part} runs in the program\n"
