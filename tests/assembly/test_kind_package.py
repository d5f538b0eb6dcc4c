"""A kind of issue from an installed package: one process reports such an issue, others read it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

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
NOT_SHOWN = "loopcanary: 1 issue of kind lock-wait is not shown: its plugin is not installed\n"


class Place:
    """A folder with an installed package, a program and a store."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.site = folder / "site"
        metadata = self.site / "lock_waits-1.dist-info"
        metadata.mkdir(parents=True)
        (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: lock-waits\nVersion: 1\n")
        (metadata / "entry_points.txt").write_text(
            "[loopcanary.kinds]\nlock-wait = lock_waits:KIND\n\n"
            "[loopcanary.tracers]\nlocks = lock_waits:LockTracer\n"
        )
        shutil.copy(lock_waits.__file__, self.site)
        (folder / "program.py").write_text(PROGRAM)

    def command(self, *words: str, is_installed: bool = True) -> subprocess.CompletedProcess[str]:
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
        assert done.returncode == 0, done.stdout + done.stderr
        return done


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
