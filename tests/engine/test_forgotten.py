"""Flight files in shared memory whose stores are gone."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from loopcanary.assembly.store import open_store, recover
from loopcanary.engine.flight_place import SHARED_MEMORY

pytestmark = [
    pytest.mark.native,
    pytest.mark.skipif(not os.access(SHARED_MEMORY, os.W_OK), reason="needs shared memory"),
]
_MONTH_S = 31 * 86_400


@pytest.fixture
def begun(place):
    """Starts a program that waits, and tells its flight file in memory."""

    def begin() -> tuple[subprocess.Popen[bytes], Path]:
        program = place.program("""
            asyncio.run(asyncio.sleep(0))
            print("ready", flush=True)
            sys.stdin.read()
        """)
        # A process's number may be that of one before, which was killed and left its own.
        before = set(SHARED_MEMORY.glob("loopcanary-*"))
        # A stall would start a keeper, which takes in what the test looks for.
        calm = place.environment(LOOPCANARY_THRESHOLD="1h")
        process = place.start(program, env=calm, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert process.stdout.readline() == b"ready\n"
        (file,) = set(SHARED_MEMORY.glob(f"loopcanary-{os.getuid()}-*-{process.pid}-*.flight")) - before
        return process, file

    return begin


def look(folder: Path) -> None:
    store = open_store(folder)
    try:
        recover(store)
    finally:
        store.close()


def test_a_dead_process_file_goes_after_a_month(place, begun, tmp_path):
    dead, of_the_dead = begun()
    dead.kill()
    dead.wait()
    shutil.rmtree(place.store)
    running, of_the_running = begun()
    shutil.rmtree(place.store)
    look(tmp_path / "another")
    assert of_the_dead.exists()
    a_month_ago = time.time() - _MONTH_S
    for file in (of_the_dead, of_the_running):
        os.utime(file, (a_month_ago, a_month_ago))
    look(tmp_path / "another")
    assert not of_the_dead.exists()
    assert of_the_running.exists()
    running.kill()
    running.wait()
    os.utime(of_the_running, (a_month_ago, a_month_ago))  # its watchdog may have written since
    look(tmp_path / "another")
    assert not of_the_running.exists()
