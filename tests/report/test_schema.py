"""report-schema-1.json is what tools/report_schema.py makes of the values."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.report.test_report import SCHEMA

import loopcanary.report


def test_the_schema_is_the_one_that_is_generated(tree: Path) -> None:
    tool = tree / "tools" / "report_schema.py"
    made = subprocess.run([sys.executable, str(tool)], capture_output=True, text=True, check=True).stdout
    file = Path(loopcanary.report.__file__).with_name("report-schema-1.json")
    assert file.read_text("utf-8") == made, f"run {tool.name} and keep what it prints"


def test_the_schema_is_a_schema() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
