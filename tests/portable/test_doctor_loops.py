"""What doctor says of kinds of loops under the portable engine."""

from __future__ import annotations

from loopcanary.assembly.doctor import loops
from loopcanary.built_in import BUILT_IN
from loopcanary.model.config import PORTABLE
from loopcanary.registry import LOOPS, LoopKind, load


def test_doctor_says_of_each_kind_whether_it_is_watched(monkeypatch):
    kinds = (
        BUILT_IN[LOOPS]["asyncio"],
        LoopKind("novel", awaits=("json",), probe="nowhere:NovelProbe"),
        LoopKind(
            "noting",
            awaits=("html",),
            probe="nowhere:NotingProbe",
            portable="loopcanary.probes.tk.portable:PortableTkProbe",
        ),
        LoopKind("absent", awaits=("no_such_module_anywhere",), probe="nowhere:AbsentProbe"),
    )
    monkeypatch.setitem(BUILT_IN, LOOPS, {kind.kind: kind for kind in kinds})
    assert loops.loop_facts(PORTABLE) == [
        ("loop asyncio", "ok", "comes with Python"),
        ("loop novel", "off", "not watched by the portable engine"),
        ("loop noting", "ok", "comes with Python"),
        ("other loops", "off", "not installed here: absent"),
    ]


def test_what_the_table_calls_portable_is_there():
    for kind in BUILT_IN[LOOPS].values():
        if kind.portable is not None:
            assert load(kind.portable).kind == kind.kind
