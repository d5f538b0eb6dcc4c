from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from .agents import Agent

pytest.importorskip("loopcanary._native", reason="needs the C core")


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Callable[..., Agent]]:
    """Starts processes, and ends them after the test."""
    made: list[Agent] = []

    def begin(**settings: Any) -> Agent:
        made.append(Agent.begin(tmp_path, **settings))
        return made[-1]

    yield begin
    for agent in made:
        agent.process.kill()
        agent.process.communicate()
