"""The engine may start in the middle of a library's import: what that defines is patched when it is there."""

from __future__ import annotations

import sys
from importlib import import_module

import pytest

from loopcanary.probes import ImportWatch, LateProbe
from loopcanary.registry import LoopKind

HALF = """
import half_imported_within
WHOLE = True
"""
WITHIN = """
import test_seam
test_seam.start()
"""
FAILS = """
import half_imported_within
raise LookupError("as it must")
"""


@pytest.fixture
def modules(tmp_path, monkeypatch):
    """Modules of this test's own; what they import calls `start` of the module test_seam."""
    seam = type(sys)("test_seam")
    monkeypatch.setitem(sys.modules, "test_seam", seam)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "half_imported.py").write_text(HALF)
    (tmp_path / "half_imported_within.py").write_text(WITHIN)
    yield seam, tmp_path
    for name in ("half_imported", "half_imported_within"):
        sys.modules.pop(name, None)


def test_a_half_imported_module_is_patched_when_it_is_whole(modules):
    seam, _ = modules
    seen = []
    watch = ImportWatch("half_imported", lambda: seen.append(sys.modules["half_imported"].WHOLE))
    seam.start = watch.start
    module = import_module("half_imported")
    assert seen == [True]
    assert type(module.__spec__) is type(sys.__spec__)
    assert vars(module.__spec__).keys() == vars(import_module("half_imported_within").__spec__).keys()
    assert not watch.is_waiting


def test_an_import_that_fails_half_way_is_waited_for_again(modules):
    seam, folder = modules
    seen = []
    watch = ImportWatch("half_imported", lambda: seen.append("whole"))
    seam.start = watch.start
    (folder / "half_imported.py").write_text(FAILS)
    with pytest.raises(LookupError):
        import_module("half_imported")
    assert seen == []
    assert watch.is_waiting
    (folder / "half_imported.py").write_text("WHOLE = 'and of another length'")
    import_module("half_imported")
    assert seen == ["whole"]
    assert not watch.is_waiting


def test_who_waits_no_more_hears_nothing(modules):
    seam, _ = modules
    seen = []
    watch = ImportWatch("half_imported", lambda: seen.append("whole"))

    def start():
        watch.start()
        watch.cancel()

    seam.start = start
    import_module("half_imported")
    assert seen == []


class OldLoader:
    """From before PEP 451."""

    def load_module(self, name):
        module = sys.modules[name] = type(sys)(name)
        module.WHOLE = True
        return module


class OldFinder:
    def find_spec(self, name, *_):
        return type(sys.__spec__)(name, OldLoader()) if name == "half_imported" else None


@pytest.mark.skipif(sys.version_info >= (3, 15), reason="this CPython calls exec_module only")
@pytest.mark.filterwarnings("ignore::ImportWarning", "ignore::DeprecationWarning")
def test_a_loader_without_exec_module_loads_as_ever(modules, monkeypatch):
    monkeypatch.setattr(sys, "meta_path", [OldFinder(), *sys.meta_path])
    watch = ImportWatch("half_imported", lambda: None)
    watch.start()
    try:
        assert import_module("half_imported").WHOLE
    finally:
        watch.cancel()


class Meanwhile:
    """Like another thread: what it does happens in the middle of an import."""

    def __init__(self, act):
        self._act = act

    def find_spec(self, name, *_):
        if name == "half_imported":
            self._act()


def test_an_import_goes_on_when_the_watch_ends(modules, monkeypatch):
    seam, _ = modules
    seam.start = lambda: None
    watch = ImportWatch("never_imported", lambda: None)
    monkeypatch.setattr(sys, "meta_path", [Meanwhile(watch.cancel), sys.meta_path[-1]])
    watch.start()
    try:
        assert import_module("half_imported").WHOLE
    finally:
        watch.cancel()
    assert len(sys.meta_path) == 2


def test_a_probe_that_is_uninstalled_while_it_loads_is_off(modules):
    seam, _ = modules
    calls = []

    class Probe:
        def __init__(self, *_):
            late.uninstall()  # as another thread may

        def install(self):
            calls.append("install")

        def uninstall(self):
            calls.append("uninstall")

    seam.Probe = Probe
    kind = LoopKind("seam", awaits="sys", probe="test_seam:Probe", portable=None)
    late = LateProbe(kind, None, lambda: None, lambda patch: patch(), probe="test_seam:Probe")
    late.install()
    assert calls[-1:] == ["uninstall"]
