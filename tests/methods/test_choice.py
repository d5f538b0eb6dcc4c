"""Which functions are traced, and the map in which they are."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import CodeType, SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopcanary.model.method_map import MAGIC, Method, record_of, records_in
from loopcanary.tracers.methods import CallsTracer, ChosenCode, is_trivial


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "path", [str(tmp_path), str(tmp_path / "lib/site-packages"), *sys.path])
    return tmp_path


@pytest.mark.parametrize(
    ("wanted", "file", "is_chosen"),
    [
        ("shop", "shop/__init__.py", True),
        ("shop", "shop/web/views.py", True),
        ("shop", "shopping.py", False),
        ("shop.web", "shop/web/views.py", True),
        ("shop.web", "shop/db.py", False),
        ("shop.*_api", "shop/cart_api.py", True),
        ("shop.*_api", "shop/cart.py", False),
        ("shop !shop.web", "shop/web/views.py", False),
        ("shop !shop.web", "shop/db.py", True),
        (". !shop.web", "shop/web/views.py", False),
        (".", "shop/db.py", True),
        (".", "app.py", True),
        (".", "lib/site-packages/requests/api.py", False),
        ("requests", "lib/site-packages/requests/api.py", True),
        (". requests", "lib/site-packages/requests/api.py", True),
    ],
)
def test_code_is_chosen_by_its_modules_name(project, wanted, file, is_chosen):
    assert ChosenCode(wanted.split()).has(str(project / file)) is is_chosen


@pytest.mark.parametrize("file", ["<string>", "<frozen importlib._bootstrap>", ""])
def test_code_without_a_file_is_not_traced(file):
    assert not ChosenCode([".", "*"]).has(file)


def test_neither_stdlib_nor_we_are_the_programs_own():
    import json.decoder

    import loopcanary.registry

    own = ChosenCode(["."])
    assert not own.has(json.decoder.__file__)
    assert not own.has(loopcanary.registry.__file__)
    assert ChosenCode(["json"]).has(json.decoder.__file__)
    assert not ChosenCode(["loopcanary"]).has(loopcanary.registry.__file__)


def getter(self):
    return self._value


def setter(self, value):
    self._value = value


def constant():
    return 60 * 60 * 24


def either(self):
    return self._value if self._value is not None else None


def calls(self):
    return self._value()


def adds(left, right):
    return left + right


def loops():
    while True:
        pass


def yields():
    yield


@pytest.mark.parametrize(
    ("function", "is_it"),
    [
        (getter, True),
        (setter, True),
        (constant, True),
        (either, True),
        (calls, False),
        (adds, False),
        (loops, False),
        (yields, False),
    ],
    ids=lambda one: getattr(one, "__name__", one),
)
def test_getters_setters_and_constants_are_trivial(function, is_it):
    assert is_trivial(function.__code__) is is_it


METHODS = st.lists(
    st.builds(
        Method,
        number=st.integers(0, (1 << 20) - 1),
        qualname=st.text(st.characters(codec="utf-8"), max_size=40),
        file=st.text(st.characters(codec="utf-8"), max_size=40),
        line=st.integers(0, (1 << 32) - 1),
        is_trivial=st.booleans(),
    ),
    max_size=4,
)


@given(methods=METHODS, cut=st.integers(0, 200))
def test_a_map_that_is_cut_short_has_its_whole_records(methods, cut):
    content = MAGIC + b"".join(map(record_of, methods))
    assert list(records_in(content)) == methods
    found = list(records_in(content[:-cut] if cut else content))
    assert found == methods[: len(found)]


@given(content=st.binary(max_size=200))
def test_any_bytes_are_read_as_a_map(content):
    assert list(records_in(content)) == []
    list(records_in(MAGIC + content))


def test_functions_that_come_at_once_have_numbers_of_their_own(monkeypatch, project):
    """Another thread's first call comes in the middle of writing a name, when the GIL is let go of."""
    calls: dict[str, Any] = {}
    native: Any = SimpleNamespace(
        calls_start=lambda *given: calls.update(chooser=given[4]),
        calls_stop=lambda: None,
        calls_on_start=None,
        calls_on_enter=None,
        calls_on_leave=None,
    )
    tracer = CallsTracer(native, ["."], 1 << 20, [].append)
    chosen: dict[str, int] = {}
    write = os.write

    def number_of(name: str) -> int:
        module = compile(f"def {name}():\n    return [str(n) for n in range(9)]", project / "app.py", "exec")
        number: int = calls["chooser"](next(one for one in module.co_consts if isinstance(one, CodeType)))
        return number

    def interrupted(descriptor: int, record: bytes) -> int:
        if b"first" in record and "second" not in chosen:
            chosen["second"] = number_of("second")
        return write(descriptor, record)

    tracer.start(str(project / "flight"))
    try:
        monkeypatch.setattr(os, "write", interrupted)
        chosen["first"] = number_of("first")
    finally:
        tracer.stop()
    assert sorted(chosen.values()) == [1, 2]
    written = records_in((project / "flight.methods").read_bytes())
    assert {one.qualname: one.number for one in written} == chosen
