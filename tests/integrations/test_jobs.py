"""Workers of task queues: a job is a piece of work, with a threshold of its own and the job's name."""

from __future__ import annotations

import signal
import subprocess
import time

import pytest

from .serving import GIVES_UP_S, PROGRAMS, assert_told

pytestmark = pytest.mark.native

SETTINGS = {"LOOPCANARY_TASK_THRESHOLD": "500ms", "PYTHONWARNINGS": "ignore"}


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
