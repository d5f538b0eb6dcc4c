"""Web servers on uvloop, watched from outside by `loopcanary run` while clients load them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from loopcanary.assembly.store import open_store, recover
from loopcanary.model import Cause
from loopcanary.model.search import STALLS

SERVICE = Path(__file__).with_name("service.py")
CLIENTS = 4
(LINE,) = (
    number
    for number, text in enumerate(SERVICE.read_text().splitlines(), start=1)
    if text.endswith("# <- culprit")
)


@pytest.mark.parametrize(
    ("server", "framework"), [("uvicorn", "starlette"), ("uvicorn", "fastapi"), ("hypercorn", "starlette")]
)
def test_a_handler_that_blocks_is_found_with_its_line_and_cause(tmp_path, package_path, server, framework):
    pytest.importorskip(server, reason=f"{server} is not installed")
    pytest.importorskip(framework, reason=f"{framework} is not installed")
    clean = {name: value for name, value in os.environ.items() if not name.startswith("LOOPCANARY")}
    done = subprocess.run(
        [sys.executable, *f"-m loopcanary run --quiet --store store {SERVICE} {server} {framework}".split()],
        env={**clean, "PYTHONPATH": str(package_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    store = open_store(tmp_path / "store")
    try:
        recover(store)  # a keeper may not have come to it yet
        found = store.reader.issues(STALLS)
    finally:
        store.close()
    stalls = [stall for stall in found if stall.loop == "uvloop" and stall.cause is not Cause.HOST]
    blamed = [
        stall for stall in stalls if stall.culprit is not None and stall.culprit.function == "read_rates"
    ]
    # Requests that arrive together are handled one after the other, and each is a callback.
    assert len(blamed) >= CLIENTS // 2
    assert {stall.culprit.line for stall in blamed} == {LINE}
    # On a busy machine a client may be held up with the GIL, for longer than the handler sleeps.
    causes = {stall.cause for stall in blamed}
    assert Cause.SLEEP in causes
    assert causes <= {Cause.SLEEP, Cause.GIL}
    assert all(stall.task for stall in blamed)
