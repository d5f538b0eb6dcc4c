"""A store that was written earlier opens, and its report has the same fields and values, sentences aside.

`kept/loopcanary.db.gz` has runs of a real program, one of them killed in a
stall, and one issue of each kind. `kept/reports.json` is what `loopcanary` said about it then: the whole
report, and of others what is not in that one as it is.
"""

from __future__ import annotations

import gzip
import io
import json
import os
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from loopcanary.cli import main
from loopcanary.store.sqlite import database

KEPT = Path(__file__).parent / "kept"
SENTENCES = {"title", "evidence", "advice"}
"""Fields whose values are words for people: a better wording changes them."""
WHOLE = "report --limit 0"
REPORTS: dict[str, dict[str, Any]] = json.loads((KEPT / "reports.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("kept")
    (folder / database.FILE_NAME).write_bytes(gzip.decompress((KEPT / "loopcanary.db.gz").read_bytes()))
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("LOOPCANARY")]:
            patch.delenv(name)
        patch.chdir(folder)
        yield folder


def without_sentences(value: Any) -> Any:
    if isinstance(value, list):
        return [without_sentences(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        name: without_sentences(inner)
        for name, inner in value.items()
        if name not in SENTENCES and name != "generated_at"
    }


def reported(command: str, store: Path) -> dict[str, Any]:
    out = io.StringIO()
    with redirect_stdout(out):
        assert main([*command.split(), "--format", "json", "--store", str(store)]) == 0
    return without_sentences(json.loads(out.getvalue()))


def shortened(report: dict[str, Any], whole: dict[str, Any]) -> dict[str, Any]:
    """The report with ids in the place of the records that the whole report has, too, and has alike."""
    short = dict(report)
    for name in ("sessions", "stalls", "issues"):
        alike = {one["id"]: one for one in whole[name]}
        short[name] = [one["id"] if one == alike.get(one["id"]) else one for one in report[name]]
    return short


@pytest.fixture(scope="module")
def whole(kept: Path) -> dict[str, Any]:
    return reported(WHOLE, kept)


def test_the_whole_report_is_as_it_was(whole: dict[str, Any]) -> None:
    assert whole == REPORTS[WHOLE]


@pytest.mark.parametrize("command", [command for command in REPORTS if command != WHOLE])
def test_a_part_is_as_it_was(kept: Path, whole: dict[str, Any], command: str) -> None:
    assert shortened(reported(command, kept), whole) == REPORTS[command]
