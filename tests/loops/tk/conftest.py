from __future__ import annotations

from collections.abc import Iterator

import pytest

from .x_server import x_server

pytest.importorskip("loopcanary._native", reason="needs the C core")
pytest.importorskip("_tkinter", reason="this Python has no tkinter")


@pytest.fixture(autouse=True, scope="session")
def screen() -> Iterator[None]:
    """Where all tests draw."""
    with x_server() as display, pytest.MonkeyPatch.context() as patch:
        patch.setenv("DISPLAY", display)
        yield
