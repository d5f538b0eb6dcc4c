from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator

import pytest

pytest.importorskip("loopcanary._native", reason="needs the C core")
pytest.importorskip("_tkinter", reason="this Python has no tkinter")


@pytest.fixture(autouse=True, scope="session")
def screen() -> Iterator[None]:
    """An X server of the tests' own, with no window manager."""
    if shutil.which("Xvfb") is None:
        pytest.skip("Xvfb is not installed")
    reading, writing = os.pipe()
    # It chooses a free display and tells it; it ends by SIGTERM.
    server = subprocess.Popen(
        ["Xvfb", "-displayfd", str(writing), "-screen", "0", "800x600x24", "-nolisten", "tcp"],
        pass_fds=[writing],
        stderr=subprocess.DEVNULL,
    )
    os.close(writing)
    with os.fdopen(reading) as told:
        number = told.readline().strip()
    if not number:
        server.wait()
        pytest.skip("Xvfb does not start here")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DISPLAY", f":{number}")
        yield
    server.terminate()
    server.wait()
