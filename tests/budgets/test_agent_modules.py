"""What is loaded into a program that judges nothing itself: each name is here, of ours and of Python's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import asyncio, sys, time
import loopcanary
before = {*sys.modules}
canary = loopcanary.install(console="off", keeper=True)

async def main():
    await asyncio.sleep(0)
    time.sleep(0.15)
    await asyncio.sleep(0)

asyncio.run(main())
assert canary.kept is not None
print("loopcanary", *({*sys.modules} - before))
"""
OURS = {
    "loopcanary",
    "loopcanary._native",
    "loopcanary.assembly",
    "loopcanary.assembly.agent",
    "loopcanary.assembly.kept",
    "loopcanary.built_in",
    "loopcanary.config",
    "loopcanary.config.kinds",
    "loopcanary.engine",
    "loopcanary.engine.attachment",
    "loopcanary.engine.canary",
    "loopcanary.engine.kept",
    "loopcanary.engine.recorder",
    "loopcanary.engine.traced",
    "loopcanary.facts",
    "loopcanary.keeper",
    "loopcanary.model",
    "loopcanary.model.config",
    "loopcanary.patches",
    "loopcanary.probes",
    "loopcanary.probes.asyncio",
    "loopcanary.registry",
    "loopcanary.whose_exception",
    "loopcanary.whose_stderr",
}
IMPORTLIB = {"importlib", "importlib._bootstrap", "importlib._bootstrap_external", "warnings"}
PYTHONS = {"__future__", "_json", "atexit", "binascii", "gc", *IMPORTLIB}
"""Small ones, all of them. What takes milliseconds is not among them: typing, enum, re, dataclasses, json."""
STARTED = {"loopcanary._startup", "loopcanary.model.units", "loopcanary_auto", "sitecustomize"}
"""More of ours where `loopcanary run` started the program: its settings come as text."""
LOOPS = {"loopcanary.probes.asyncio"}
SHOWN = "import sys; print(*sys.modules)"


def printed(*command: str, folder: Path, **settings: str) -> set[str]:
    """The words that a process prints."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("LOOPCANARY")}
    done = subprocess.run(
        command, cwd=folder, env=clean | settings, capture_output=True, text=True, check=True, timeout=280
    )
    return set(done.stdout.split())


def test_each_module_of_a_watched_loop_is_named(tmp_path):
    loaded = printed(sys.executable, "-c", PROGRAM, folder=tmp_path)
    assert {name for name in loaded if name.partition(".")[0] == "loopcanary"} == OURS


def test_run_loads_few_modules_into_a_program(tmp_path):
    plain = printed(sys.executable, "-c", SHOWN, folder=tmp_path)
    command = sys.executable, "-m", "loopcanary", "run", "--quiet", "-c", SHOWN
    watched = printed(*command, folder=tmp_path, LOOPCANARY_KEEPER="1")
    assert watched - plain <= OURS - LOOPS | STARTED | PYTHONS
