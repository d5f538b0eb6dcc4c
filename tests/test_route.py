"""From a slot of the flight file to the page: an editor's "go to definition" works at each step."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import loopcanary

PACKAGE = Path(loopcanary.__file__).parent

# Where the call stands, how it is written, and where what it calls is defined.
ROUTE = [
    ("keeper/loop.py", "store.turn", "keeper/kept_store.py"),
    ("keeper/kept_store.py", "self._attend", "keeper/kept_store.py"),
    ("keeper/kept_store.py", "self._deal_with", "keeper/kept_store.py"),
    ("keeper/kept_store.py", "self._files.open", "keeper/kept_store.py"),
    ("keeper/kept_store.py", "life.look", "keeper/kept_store.py"),
    ("assembly/keeper/program.py", "self._serve", "assembly/keeper/program.py"),
    ("assembly/keeper/program.py", "self._read_slots", "assembly/keeper/program.py"),
    ("assembly/keeper/program.py", "self._judge_ended", "assembly/keeper/program.py"),
    ("assembly/keeper/program.py", "self._file.slot_evidence", "flight/reader.py"),
    ("flight/reader.py", "copy_slot", "flight/slots.py"),
    ("flight/reader.py", "settle", "flight/stalls.py"),
    ("flight/reader.py", "slot_evidence", "flight/stalls.py"),
    ("assembly/keeper/program.py", "credible", "store/recovery/forensics.py"),
    ("assembly/keeper/program.py", "stations.judge", "assembly/keeper/stations.py"),
    ("assembly/keeper/stations.py", "self._pipeline.judge", "pipeline/pipeline.py"),
    ("pipeline/pipeline.py", "self._judge", "pipeline/pipeline.py"),
    ("pipeline/pipeline.py", "self._diagnose", "pipeline/pipeline.py"),
    ("pipeline/pipeline.py", "diagnose", "diagnosis/judgement.py"),
    ("diagnosis/judgement.py", "open_case", "diagnosis/case.py"),
    ("diagnosis/judgement.py", "judge", "diagnosis/causes/verdict.py"),
    ("diagnosis/judgement.py", "_to_stall", "diagnosis/judgement.py"),
    ("assembly/keeper/stations.py", "with_calls", "assembly/store.py"),
    ("pipeline/pipeline.py", "drop_reason", "diagnosis/judgement.py"),
    ("pipeline/pipeline.py", "self._store_and_tell", "pipeline/pipeline.py"),
    ("pipeline/pipeline.py", "self._store", "pipeline/pipeline.py"),
    ("pipeline/pipeline.py", "self._stations.sink.put_issue", "protocols/stores.py"),
    ("assembly/keeper/stations.py", "self.put_unstored", "assembly/keeper/stations.py"),
    ("assembly/keeper/stations.py", "self._store.put", "store/store.py"),
    ("store/store.py", "records.issue_columns", "store/records.py"),
    ("store/records.py", "kind_of(issue).packed", "protocols/kinds.py"),
    ("store/store.py", "self._database.write", "store/sqlite/database.py"),
    ("pipeline/pipeline.py", "self._tell", "pipeline/pipeline.py"),
    ("tracers/reported.py", "kind.fitted", "protocols/kinds.py"),
    ("pipeline/pipeline.py", "reporter.report", "protocols/plugins.py"),
    # where the program judges itself
    ("engine/running.py", "self._judge_now", "engine/running.py"),
    ("engine/running.py", "self.backend.read", "protocols/engine.py"),
    ("engine/running.py", "parts.pipeline.judge", "pipeline/pipeline.py"),
    # the page
    ("ui/app.py", "issue_page", "ui/pages/issue.py"),
    ("ui/pages/issue.py", "source.issue", "protocols/stores.py"),
    ("ui/pages/issue.py", "kind_of", "protocols/kinds.py"),
    ("ui/pages/issue.py", "kind.parts", "protocols/kinds.py"),
    ("ui/pages/issue.py", "tree_of", "ui/pages/trees.py"),
    ("ui/app.py", "self._render", "ui/app.py"),
    ("ui/app.py", "self._site.renderer.page", "ui/rendering.py"),
]


@cache
def calls(file: str) -> dict[str, tuple[int, int]]:
    """Line and column of the last name in the first call of each."""
    tree = ast.parse((PACKAGE / file).read_text(encoding="utf-8"))
    found: dict[str, tuple[int, int]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            at = node.func.end_lineno or 0, (node.func.end_col_offset or 0) - 1
            found.setdefault(ast.unparse(node.func), at)
    return found


@pytest.fixture(scope="module")
def open_script() -> Callable[[Path], Any]:
    jedi = pytest.importorskip("jedi")
    about = {
        "project": jedi.Project(PACKAGE.parent, smart_sys_path=False),
        # Not this process's: what is imported here would be taken for what the files say.
        "environment": jedi.create_environment(sys.prefix, safe=False),
    }
    try:
        about["environment"].get_grammar()
    except NotImplementedError as error:  # it does not know this Python yet
        pytest.skip(str(error))
    return lambda path: jedi.Script(path.read_text(encoding="utf-8"), path=path, **about)


@pytest.mark.xdist_group("route")
@pytest.mark.parametrize(("file", "call", "definition"), ROUTE, ids=str)
def test_an_editor_finds_the_next_step(open_script, file, call, definition):
    found = open_script(PACKAGE / file).goto(*calls(file)[call], follow_imports=True)
    assert [(one.name, str(one.module_path)) for one in found] == [
        (call.rpartition(".")[2], str(PACKAGE / definition))
    ]
