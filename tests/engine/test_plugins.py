"""Third parties' reporters and interceptors, found by their entry points without reading every package."""

from __future__ import annotations

import time
import zipfile
from pathlib import Path

import pytest

from .watching import GIVES_UP_S, PATIENT_END, PATIENT_PLUGINS, PRELUDE

PLUGIN = """
import os

class Told:
    name = "told"

    def __init__(self, run):
        self.run = run

    def report(self, issue, repeated):
        with open(os.environ["TOLD"], "a") as file:
            file.write(getattr(issue.culprit, "function", "") + "\\n")

    def close(self, session, stalls):
        pass

def drop_some(issue):
    return None if getattr(issue.culprit, "function", "") == "dropped" else issue
"""
ENTRY_POINTS = """\
[loopcanary_tools.reporters]
told = told_plugin:Told
broken = told_plugin:Missing
[loopcanary_tools.interceptors]
some = told_plugin:drop_some
"""
METADATA = "Metadata-Version: 2.1\nName: told\nVersion: 1\n"
FILES = {
    "told_plugin.py": PLUGIN,
    "{metadata}/METADATA": METADATA,
    "{metadata}/PKG-INFO": METADATA,
    "{metadata}/entry_points.txt": ENTRY_POINTS,
}
PROGRAM = """
    stall("seen")
    stall("dropped")
    if os.environ.get("TOLD") and os.environ["LOOPCANARY_KEEPER"] == "1":
        gives_up = time.monotonic() + 250  # root's keeper reports only programs that it has seen at work
        while "seen" not in open(os.environ["TOLD"]).read() and time.monotonic() < gives_up:
            time.sleep(0.02)
    print("importlib.metadata" in sys.modules)
"""


def as_folder(target: Path, metadata: str) -> Path:
    for name, text in FILES.items():
        path = target / name.format(metadata=metadata)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return target


def as_archive(target: Path, metadata: str) -> Path:
    with zipfile.ZipFile(target, "w") as archive:
        for name, text in FILES.items():
            archive.writestr(name.format(metadata=metadata), text)
    return target


@pytest.mark.parametrize(
    ("make", "name", "metadata", "keeper"),
    [
        (as_folder, "plugins", "told-1.dist-info", "1"),
        (as_folder, "plugins", "told-1.dist-info", "0"),
        (as_folder, "plugins", "told.egg-info", "1"),
        (as_folder, "told-1.egg", "EGG-INFO", "1"),
        (as_archive, "plugins.zip", "told-1.dist-info", "1"),
    ],
    ids=["wheel", "wheel, without a keeper", "develop", "egg", "archive"],
)
def test_an_installed_package_plugs_in(place, make, name, metadata, keeper):
    where = make(place.folder / name, metadata)
    told = place.folder / "told"
    told.touch()
    # Else what stalled last is taken in here, without the plugin.
    program = place.program(PROGRAM, prelude=PRELUDE + PATIENT_END + PATIENT_PLUGINS)
    place.run(program, PYTHONPATH=str(where), TOLD=str(told), LOOPCANARY_KEEPER=keeper)
    gives_up = time.monotonic() + GIVES_UP_S
    while "seen" not in told.read_text() and time.monotonic() < gives_up:
        time.sleep(0.02)  # a keeper may take longer than the program waits
    assert "seen" in told.read_text().split()
    assert "dropped" not in told.read_text()
    assert "dropped" not in place.culprits()


def test_packages_without_plugins_cost_no_metadata(place):
    other = place.folder / "plugins" / "other-1.dist-info"
    other.mkdir(parents=True)
    (other / "entry_points.txt").write_text("[console_scripts]\nloopcanary-like = other:main\n")
    (other.parent / "broken.dist-info").write_text("no folder")
    done = place.run(place.program(PROGRAM), PYTHONPATH=str(other.parent))
    assert done.stdout == "False\n"
    assert done.stderr == ""


@pytest.mark.native
@pytest.mark.parametrize(
    ("group", "costs"),
    [
        ("loopcanary_tools.importers", False),
        ("loopcanary_tools.reporters", False),
        ("loopcanary.loops", True),
    ],
)
def test_packages_for_tools_cost_the_program_no_module(place, group: str, costs: bool):
    """With a keeper. Forty modules know what a package brings that runs in the program."""
    program = place.program('    stall("seen")\n    print(*sorted(sys.modules))\n')
    metadata = place.folder / "plugins" / "theirs-1.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(METADATA)
    (metadata / "entry_points.txt").write_text(f"[{group}]\ntheirs = theirs_plugin:OBJECT\n")
    without, beside = (
        set(
            place.run(
                program, PYTHONPATH=path, LOOPCANARY_KEEPER="1", LOOPCANARY_CONSOLE="off"
            ).stdout.split()
        )
        for path in (str(place.folder / "none"), str(metadata.parent))
    )
    more = beside - without
    assert len(more) > 20 if costs else more == set()
