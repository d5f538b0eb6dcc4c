"""jobs_celery.py FOLDER POOL: a Celery worker that works off what lies in the folder, until it is stopped."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from celery import Celery

FOLDER = Path(sys.argv[1])
app = Celery("jobs", broker="filesystem://")
app.conf.broker_transport_options = {
    "data_folder_in": str(FOLDER),
    "data_folder_out": str(FOLDER),
    "control_folder": str(FOLDER / "control"),
}
app.conf.worker_hijack_root_logger = False


@app.task(name="jobs.render")
def render(page):
    time.sleep(0.8)  # render
    (FOLDER / f"done {page}").touch()


@app.task(name="jobs.short")
def short():
    time.sleep(0.15)


@app.task(name="jobs.fails")
def fails():
    time.sleep(0.8)  # fails
    raise LookupError("as it must")


if __name__ == "__main__":
    short.delay()
    render.delay(1)
    fails.delay()
    render.delay(2)
    app.worker_main(["worker", "--pool", sys.argv[2], "--concurrency", "1", "--loglevel", "ERROR"])
