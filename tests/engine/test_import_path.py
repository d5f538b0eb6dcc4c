"""A program with '' in sys.path goes into another user's folder: nothing of ours is imported from there."""

from __future__ import annotations

import sys
import threading
from _frozen_importlib_external import PathFinder

import pytest

from loopcanary.engine.import_path import as_here, found_absolutely

from .watching import PRELUDE

THEIRS = ("dataclasses", "datetime", "json", "pathlib", "sqlite3", "tempfile", "typing", "tokenize")


@pytest.fixture
def theirs(tmp_path):
    """Another user's folder: its modules say that they were imported, and fail."""
    folder = tmp_path / "theirs"
    folder.mkdir()
    for name in THEIRS:
        text = f"import os; os.write(1, b'theirs: {name}\\n'); raise ImportError('theirs')\n"
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    return folder


PROGRAM = """
import loopcanary
canary = loopcanary.install()
os.chdir({theirs!r})
stall("first")
assert isinstance(canary.stalls, list)
loopcanary.statistics()
loopcanary.uninstall()
try:
    import tempfile
except ImportError:
    os.write(1, b"and ours as ever\\n")
"""


@pytest.mark.native
@pytest.mark.parametrize("keeper", ["0", "1"])
@pytest.mark.parametrize("engine", ["native", "portable"])
def test_what_is_loaded_late_is_not_found_in_the_current_folder(place, theirs, engine, keeper):
    text = PRELUDE + PROGRAM.format(theirs=str(theirs))
    done = place.run("-c", text, LOOPCANARY="", LOOPCANARY_KEEPER=keeper, LOOPCANARY_ENGINE=engine)
    assert done.stdout == "theirs: tempfile\nand ours as ever\n"
    assert "failed" not in done.stderr
    assert place.culprits() == ["first"]


def test_other_threads_find_what_they_found(tmp_path, monkeypatch):
    (tmp_path / "of_the_current_folder.py").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("")
    finders = [*sys.meta_path]
    found = []

    def find():
        spec = next(
            filter(None, (one.find_spec("of_the_current_folder", None) for one in sys.meta_path)), None
        )
        found.append(spec is not None)

    def load():
        find()
        for target in (find, as_here(find)):
            thread = threading.Thread(target=target)
            thread.start()
            thread.join()
        found_absolutely(find)
        return PathFinder in sys.meta_path

    assert found_absolutely(load) is False
    find()
    assert found == [False, True, False, False, True]
    assert sys.meta_path == finders
