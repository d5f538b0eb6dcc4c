"""doctor's rows about loops: what is installed is tried in a child process."""

from __future__ import annotations

import textwrap

import pytest

from loopcanary.assembly.doctor import loops as doctor_loops
from loopcanary.built_in import BUILT_IN
from loopcanary.registry import LOOPS, LoopKind

pytest.importorskip("loopcanary._native", reason="needs the C core")

PROBE = """
class Probe:
    kind = "{kind}"
    def __init__(self, native, loop_seen, contain):
        pass
    def install(self):
        {install}
    def uninstall(self):
        pass
    def notes(self):
        return ["hooked: poll"]
"""


@pytest.fixture
def libraries(tmp_path, monkeypatch):
    """make(kind, library=..., install=...): a library of loops, and its probe; a child can import both."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    kinds: dict[str, LoopKind] = {}
    monkeypatch.setitem(BUILT_IN, LOOPS, kinds)

    def make(kind, library="", install="pass"):
        (tmp_path / f"{kind}_library.py").write_text(textwrap.dedent(library))
        (tmp_path / f"{kind}_probe.py").write_text(PROBE.format(kind=kind, install=install))
        kinds[kind] = LoopKind(kind, awaits=(f"{kind}_library",), probe=f"{kind}_probe:Probe")
        # The child reads the table, too.
        known = ", ".join(
            f"{k.kind!r}: LoopKind({k.kind!r}, awaits={k.awaits!r}, probe={k.probe!r})"
            for k in kinds.values()
        )
        (tmp_path / "sitecustomize.py").write_text(
            "from loopcanary.built_in import BUILT_IN\n"
            "from loopcanary.registry import LOOPS, LoopKind\n"
            f"BUILT_IN[LOOPS] = {{{known}}}\n"
        )

    return make


def rows():
    return {name: (status, detail) for name, status, detail in doctor_loops.loop_facts()}


def test_what_is_installed_is_tried(libraries):
    libraries("good")
    assert rows() == {"loop good": ("ok", "comes with Python; hooked: poll")}


def test_what_cannot_be_imported_is_off(libraries):
    libraries("broken", library="raise ImportError('libEGL.so.1 is missing')")
    status, detail = rows()["loop broken"]
    assert status == "off"
    assert "libEGL.so.1 is missing" in detail


def test_a_probe_that_fails_is_a_problem(libraries):
    libraries("odd", install="raise RuntimeError('it is too new')")
    assert rows() == {"loop odd": ("problem", "not watched: RuntimeError: it is too new")}


def test_a_library_that_kills_the_child_does_not_hide_the_others(libraries):
    libraries("good")
    libraries("deadly", library="import os; os._exit(3)")
    told = rows()
    assert told["loop good"][0] == "ok"
    assert told["loop deadly"] == ("off", "the child process that tried it died")


def test_what_is_absent_is_one_row(libraries):
    libraries("good")
    BUILT_IN[LOOPS]["absent"] = LoopKind("absent", awaits=("no_such_library",), probe="x:X")
    assert rows()["other loops"] == ("off", "not installed here: absent")


def test_installed_packages_are_read_once(libraries, monkeypatch):
    asked = []
    monkeypatch.setattr(doctor_loops, "packages_distributions", lambda: asked.append(1) or {})
    for kind in ("one", "two", "three"):
        libraries(kind)
    assert {"loop one", "loop two", "loop three"} <= rows().keys()
    assert asked == [1]
