"""The schemas of reports and comparisons are what tools/report_schema.py makes of the values."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.report.test_report import SCHEMA

import loopcanary.report

FILES = {(): "report-schema-1.json", ("diff",): "diff/diff-schema-1.json"}


@pytest.mark.parametrize("arguments", FILES, ids=FILES.get)
def test_a_schema_is_the_one_that_is_generated(tree: Path, arguments: tuple[str, ...]) -> None:
    tool = tree / "tools" / "report_schema.py"
    command = [sys.executable, str(tool), *arguments]
    made = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    file = Path(loopcanary.report.__file__).parent / FILES[arguments]
    assert file.read_text("utf-8") == made, f"run {tool.name} and keep what it prints"


def test_the_schema_is_a_schema() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
