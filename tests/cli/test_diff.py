"""loopcanary diff."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.report.test_comparison import ran, spread

from loopcanary.cli import main
from loopcanary.store import Retention, Store

Captured = pytest.CaptureFixture[str]


def told(capsys: Captured) -> str:
    """The one line on stderr."""
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("loopcanary: ")
    return line


def make(folder: Path, *counts: tuple[str, str, int]) -> Path:
    """A store with sessions of (id, version, stalls), ten hours each, one after the other."""
    store = Store(folder, retention=Retention(age_ns=1 << 62))
    for number, (name, version, count) in enumerate(counts):
        of = ran(name, 10 * number, 10 * number + 10, version=version)
        store.put([of], list(spread(of, count)))
    store.close()
    return folder


@pytest.fixture
def worse(place: Path) -> list[str]:
    """Two stores, the second with more stalls."""
    return [str(make(place / "a", ("a", "1", 10))), str(make(place / "b", ("b", "2", 60)))]


def test_two_stores(worse: list[str], capsys: Captured) -> None:
    assert main(["diff", *worse]) == 0
    captured = capsys.readouterr()
    assert "1 worse" in captured.out
    assert "\x1b" not in captured.out
    assert captured.err == ""


@pytest.mark.parametrize("form", ["text", "json", "markdown"])
def test_worse_can_be_a_failure(worse: list[str], capsys: Captured, form: str) -> None:
    assert main(["diff", *worse, "--fail-on-worse", "--format", form]) == 70
    assert "worse" in capsys.readouterr().out
    assert main(["diff", *reversed(worse), "--fail-on-worse", "--format", form]) == 0


def test_the_other_way_round_it_is_better(worse: list[str], capsys: Captured) -> None:
    assert main(["diff", *reversed(worse), "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [group["change"] for group in document["groups"]] == ["better"]


def test_one_store_by_version(place: Path, capsys: Captured) -> None:
    make(place / ".loopcanary", ("a", "1", 10), ("b", "2", 60), ("c", "3", 9))
    assert main(["diff", "--version-a", "1", "--version-b", "2", "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["counts"]["worse"] == 1
    assert document["after"]["label"] == ".loopcanary, version 2"


@pytest.mark.parametrize(
    ("options", "hours"),
    [
        (["--after", "2023-11-15T08:13:20Z"], (10, 20)),
        (["--before", "2023-11-15T08:13:20Z"], (10, 20)),
        (["--before", "2023-11-15T03:13:20Z", "--after", "2023-11-15T18:13:20Z"], (5, 10)),
    ],
    ids=["after", "before", "with a gap"],
)
def test_one_store_by_time(
    place: Path, capsys: Captured, options: list[str], hours: tuple[float, float]
) -> None:
    folder = make(place / "a", ("a", "1", 10), ("b", "2", 60), ("c", "3", 60))
    assert main(["diff", str(folder), *options, "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    watched = [document[side]["watched_hours"] for side in ("before", "after")]
    assert watched == pytest.approx(hours)


def test_nothing_to_compare_is_status_1(place: Path, capsys: Captured) -> None:
    make(place / ".loopcanary", ("a", "1", 10))
    assert main(["diff", "--version-a", "1", "--version-b", "2"]) == 1
    assert "nothing was watched in B (.loopcanary, version 2)" in told(capsys)
    assert main(["diff", "elsewhere", ".loopcanary"]) == 1
    assert "there is no store in" in told(capsys)


def test_two_clean_sides_are_fine(place: Path, capsys: Captured) -> None:
    stores = [str(make(place / name, (name, "1", 0))) for name in "ab"]
    assert main(["diff", *stores, "--fail-on-worse"]) == 0
    assert "No stall on either side." in capsys.readouterr().out


BAD_USE = {
    "nothing to compare by": ["diff"],
    "one store and nothing to divide it by": ["diff", "a"],
    "one version": ["diff", "a", "--version-a", "1"],
    "three stores": ["diff", "a", "b", "c"],
    "a time that is none": ["diff", "a", "--after", "yesteryear"],
    "an empty store": ["diff", "", "b"],
    "an empty version": ["diff", "a", "--version-a", "", "--version-b", "2"],
}


@pytest.mark.usefixtures("worse")
@pytest.mark.parametrize("arguments", BAD_USE.values(), ids=BAD_USE)
def test_bad_use_is_status_2_and_one_line(capsys: Captured, arguments: list[str]) -> None:
    assert main(arguments) == 2
    assert told(capsys)
