"""Workers of task queues: a job is a piece of work, with a threshold of its own and the job's name."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest
from tests.program.programs.blocking import slow
from tests.this_process import watch

from loopcanary.engine.scopes import current_scene

from .serving import GIVES_UP_S, PROGRAMS, assert_told

__all__ = ["watch"]
pytestmark = pytest.mark.native

SETTINGS = {"LOOPCANARY_JOB_THRESHOLD": "50ms", "PYTHONWARNINGS": "ignore"}


def run_to_its_end(watched, program):
    done = subprocess.run(
        watched.command(PROGRAMS / program),
        env=watched.environment(**SETTINGS),
        capture_output=True,
        text=True,
        timeout=GIVES_UP_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("pool", ["threads", "prefork"])
def test_celery(watched, tmp_path, pool):
    pytest.importorskip("celery")
    one = watched()
    folder = tmp_path / "broker"
    (folder / "control").mkdir(parents=True)
    child = subprocess.Popen(
        one.command(PROGRAMS / "jobs_celery.py", folder, pool),
        env=one.environment(**SETTINGS),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        gives_up = time.monotonic() + GIVES_UP_S
        while not (folder / "done 2").exists() and time.monotonic() < gives_up:
            assert child.poll() is None, child.communicate()[0]
            time.sleep(0.05)
    finally:
        child.send_signal(signal.SIGTERM)
        said, _ = child.communicate(timeout=GIVES_UP_S)
    assert (folder / "done 2").exists(), said
    expected = {("jobs.render", "render"): 2, ("jobs.fails", "fails"): 1}
    assert_told(one, expected, "jobs_celery.py", by_name=True)


def test_dramatiq(watched):
    pytest.importorskip("dramatiq")
    one = watched()
    run_to_its_end(one, "jobs_dramatiq.py")
    assert_told(one, {("render", "render"): 2}, "jobs_dramatiq.py", by_name=True)


def test_rq(watched):
    for needed in ("rq", "fakeredis"):
        pytest.importorskip(needed)
    one = watched()
    run_to_its_end(one, "jobs_rq.py")
    assert_told(one, {("__main__.render", "render"): 1}, "jobs_rq.py", by_name=True)


class Events:
    """As IPython's EventManager."""

    def __init__(self, shell):
        self.shell = shell
        self.told = []

    def trigger(self, event):
        self.told.append(event)


def test_a_cell_has_its_number_and_a_limit_of_its_own(watch, monkeypatch):
    monkeypatch.setitem(sys.modules, "IPython.core.events", SimpleNamespace(EventManager=Events))
    events = Events(SimpleNamespace(execution_count=3))

    async def cell():
        events.trigger("pre_execute")
        events.trigger("pre_run_cell")
        slow()
        slow()
        events.trigger("post_execute")
        assert current_scene() is None

    async def main():
        slow()
        await asyncio.create_task(cell())

    for job_threshold in ("1s", "10ms"):  # ten times that is the limit of a cell
        with watch.installed(job_threshold=job_threshold):
            asyncio.run(main())
    assert events.told == ["pre_execute", "pre_run_cell", "post_execute"] * 2
    assert [stall.scene for stall in watch.stalls()] == [None, None, "In [3]"]
