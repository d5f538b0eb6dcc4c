"""What doctor says of kinds of loops under the portable engine."""

from __future__ import annotations

from loopcanary.assembly import doctor_loops
from loopcanary.model import EngineChoice
from loopcanary.probes.table import KINDS, LoopKind


def test_doctor_tells_of_each_kind_whether_it_is_watched(monkeypatch):
    watched = next(kind for kind in KINDS if kind.kind == "asyncio")
    unwatched = LoopKind("novel", awaits=("json",), module="nowhere", probe="NovelProbe")
    noting = LoopKind(
        "noting",
        awaits=("html",),
        module="nowhere",
        probe="NotingProbe",
        portable=("loopcanary.probes.tk.portable", "PortableTkProbe"),
    )
    absent = LoopKind("absent", awaits=("no_such_module_anywhere",), module="nowhere", probe="AbsentProbe")
    monkeypatch.setattr(doctor_loops, "KINDS", (watched, unwatched, noting, absent))
    assert doctor_loops.loop_facts(EngineChoice.PORTABLE) == [
        ("loop asyncio", "ok", "comes with Python"),
        ("loop novel", "off", "not watched by the portable engine"),
        ("loop noting", "ok", "comes with Python"),
        ("other loops", "off", "not installed here: absent"),
    ]


def test_what_the_table_calls_portable_is_there():
    from importlib import import_module

    for kind in KINDS:
        if kind.portable is not None:
            module, name = kind.portable
            assert getattr(import_module(module), name).kind == kind.kind
