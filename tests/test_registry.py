"""The registry: one door for what is built in, installed, and brought by the program."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from loopcanary.assembly.doctor.plugins import plugin_facts
from loopcanary.built_in import BUILT_IN
from loopcanary.diagnosis import advice
from loopcanary.diagnosis.causes.verdict import rules
from loopcanary.model import Config
from loopcanary.registry import (
    CAUSES,
    EXPORTERS,
    GROUPS,
    INTEGRATIONS,
    KINDS,
    LOOPS,
    REGISTRY,
    REMEDIES,
    Registry,
    awaited,
    load,
)
from loopcanary.words.remedies import Remedy


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Registry:
    """A registry beside which a package is installed that brings one of each kind."""
    metadata = tmp_path / "theirs-2.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 2\n")
    lines = "".join(f"[{group}]\ntheirs = theirs_plugin:OBJECT\ncsv = no_such_module:X\n" for group in GROUPS)
    (metadata / "entry_points.txt").write_text(lines)
    (tmp_path / "theirs_plugin.py").write_text("OBJECT = 'loaded'\n")
    monkeypatch.delitem(sys.modules, "theirs_plugin", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    return Registry()


def targets_within(one: Any) -> Iterator[str]:
    """Each `module:object` that an entry of the table is, or has in it."""
    texts = [one] if isinstance(one, str) else [getattr(one, name) for name in one.__slots__]
    yield from (text for text in texts if isinstance(text, str) and ":" in text)


EVERY_TARGET = sorted(
    {text for rows in BUILT_IN.values() for one in rows.values() for text in targets_within(one)}
)


def test_the_table_names_no_group_that_is_unknown() -> None:
    assert set(BUILT_IN) <= set(GROUPS)


@pytest.mark.parametrize("target", EVERY_TARGET)
def test_what_is_built_in_can_be_loaded(target: str) -> None:
    if target.startswith("loopcanary.exporters.as_pprof"):
        pytest.importorskip("google.protobuf")
    assert load(target) is not None


@pytest.mark.parametrize("group", sorted({*GROUPS} - {LOOPS, INTEGRATIONS, KINDS, REMEDIES}))
def test_an_installed_package_registers_in_every_group(installed: Registry, group: str) -> None:
    one = installed.find(group, "theirs")
    assert one is not None
    assert (one.load(), one.origin, one.is_built_in) == ("loaded", "theirs 2", False)


@pytest.mark.parametrize(("name", "target"), BUILT_IN[KINDS].items())
def test_a_kind_is_registered_by_the_name_that_its_issues_have(name: str, target: str) -> None:
    assert load(target).issue_class.kind.value == name


def test_an_installed_package_does_not_replace_what_is_built_in(installed: Registry) -> None:
    one = installed.find(EXPORTERS, "csv")
    assert one is not None
    assert one.is_built_in


def test_the_program_replaces_what_is_built_in() -> None:
    registry = Registry()
    registry.add(EXPORTERS, "csv", "mine")
    one = registry.find(EXPORTERS, "csv")
    assert one is not None
    assert one.target == "mine"


def test_what_cannot_be_loaded_is_left_out_and_said(installed: Registry) -> None:
    failures: list[str] = []
    installed.failed = lambda part, error: failures.append(f"{part}: {type(error).__name__}")
    installed.add(CAUSES, "mine", "no_such_module:X")
    names = [one.name for one, _ in installed.loaded(CAUSES)]
    assert names == [*BUILT_IN[CAUSES], "theirs"]
    assert failures == ["plugin csv: ModuleNotFoundError", "plugin mine: ModuleNotFoundError"]


def test_no_plugin_is_looked_for_where_they_are_off(
    installed: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOOPCANARY_PLUGINS", "0")
    assert [one for group in GROUPS for one in installed.installed(group)] == []


def test_a_third_partys_rule_and_remedy_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    rule, remedy = lambda _: None, Remedy(id="mine", calls=("mine.call",), text="Do it otherwise.")
    monkeypatch.setattr(REGISTRY, "_own", {})
    REGISTRY.add(CAUSES, "mine", rule)
    REGISTRY.add(REMEDIES, "mine", (remedy,))
    assert len(rules.__wrapped__()) == len(BUILT_IN[CAUSES]) + 1
    assert advice.registered.__wrapped__().by_last_name["call"][0] == ("mine.call", remedy)


def test_an_import_of_each_built_in_loop_is_awaited() -> None:
    assert {name for kind in BUILT_IN[LOOPS].values() for name in kind.awaits} <= set(awaited())


def test_doctor_lists_what_is_registered(installed: Registry) -> None:
    del installed
    rows = {name: (status, detail) for name, status, detail in plugin_facts(Config())}
    assert rows["built-in causes"] == ("ok", ", ".join(BUILT_IN[CAUSES]))
    assert rows["reporter theirs"] == ("ok", "of theirs 2")
    assert rows["cause csv"] == (
        "problem",
        "of theirs 2: ModuleNotFoundError: No module named 'no_such_module'",
    )
    assert rows["exporter csv"] == ("problem", "of theirs 2: not loaded, its name is already taken")
