"""What loopcanary brings into a program: memory and start-up time are mostly modules."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import textwrap
from importlib import import_module
from pathlib import Path

import pytest

FOREIGN = {
    *("click", "rich", "markdown_it", "pygments"),
    # Each of these is half a megabyte or more, or brings what is.
    *("ctypes", "decimal", "email", "hashlib", "importlib.metadata", "_hashlib", "inspect"),
    *("platform", "ssl", "subprocess", "tempfile", "tomllib", "zipfile"),
}
PROGRAM = """
    import asyncio, json, sys, time
    before = set(sys.modules)

    async def main(seconds):
        await asyncio.sleep(0)
        time.sleep(seconds)

    import loopcanary
    steps = {}
    canary = loopcanary.install(_from_startup=True, engine=sys.argv[1])
    steps["armed"] = sorted(set(sys.modules) - before)
    asyncio.run(main(0))
    steps["runs"] = sorted(set(sys.modules) - before)
    asyncio.run(main(0.15))
    if kept := sys.modules.get("loopcanary.assembly.kept"):
        kept.END_PATIENCE_S = 60  # a keeper on a busy host
    loopcanary.uninstall()
    steps["has stored a stall"] = sorted(set(sys.modules) - before)
    print(json.dumps(steps))
"""


NATIVE = pytest.param("native", marks=pytest.mark.native)


@pytest.fixture(params=[NATIVE, "portable"])
def loaded(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, set[str]]:
    """What a program has loaded of ours, and for us, at each step of its life."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LOOPCANARY")}
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(PROGRAM))
    done = subprocess.run(
        [sys.executable, program, request.param],
        env={**kept, "LOOPCANARY_STORE": str(tmp_path / "store"), "LOOPCANARY_CONSOLE": "1"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "[loopcanary] stall" in done.stderr or "[loopcanary] hang" in done.stderr
    return {step: set(modules) for step, modules in json.loads(done.stdout).items()}


def plainly_needed() -> set[str]:
    """What the standard library brings by itself with modules that are needed."""
    code = "import asyncio, dataclasses, enum, pathlib, re, json, sqlite3, sys; print(*sys.modules)"
    return set(
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.split()
    )


def test_no_step_loads_what_is_large(loaded: dict[str, set[str]]) -> None:
    unwanted = FOREIGN - plainly_needed()
    assert {step: modules & unwanted for step, modules in loaded.items() if modules & unwanted} == {}


_OF_A_STALL = ("diagnosis.causes", "flight", "report.", "assembly.engine", "store", "words.titles")
_OF_A_STALL_NAMES = tuple(f"loopcanary.{name}" for name in _OF_A_STALL)


@pytest.mark.parametrize(
    ("loaded", "step"),
    [
        pytest.param("native", "armed", marks=pytest.mark.native),
        pytest.param("native", "runs", marks=pytest.mark.native),
        ("portable", "armed"),  # it judges, and loads when it runs
    ],
    indirect=["loaded"],
)
def test_what_a_stall_takes_is_not_loaded_before_it(loaded: dict[str, set[str]], step: str) -> None:
    assert [module for module in loaded[step] if module.startswith(_OF_A_STALL_NAMES)] == []
    assert {"json", "sqlite3", "datetime"} & loaded[step] - plainly_needed() == set()


@pytest.mark.parametrize("loaded", [NATIVE], indirect=True)
def test_nothing_is_loaded_for_a_stall_that_a_keeper_takes(loaded: dict[str, set[str]]) -> None:
    """An import is work, may meet a folder that is gone, and takes locks."""
    assert loaded["has stored a stall"] - loaded["runs"] == set()


@pytest.mark.parametrize("name", ["loopcanary.model", "loopcanary.store"])
def test_names_that_are_loaded_when_they_are_used_are_there(name: str) -> None:
    package = import_module(name)
    homes = {
        member: f"{name}.{home}" for home, members in package._HOMES.items() for member in members.split()
    }
    assert sorted(homes) == sorted(package.__all__)
    assert package.__file__ is not None
    imported = {
        alias.name: node.module
        for node in ast.walk(ast.parse(Path(package.__file__).read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("loopcanary")
        for alias in node.names
    }
    assert homes == imported  # what mypy is told
    for member, home in homes.items():
        assert getattr(package, member) is getattr(import_module(home), member)
