"""What a reader may count on: every command on one, an API page that is current."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from loopcanary.cli.command_line import COMMANDS

TREE = Path(__file__).resolve().parents[2]


def by_name(path: Path) -> str:
    return path.name


@pytest.mark.parametrize("page", sorted((TREE / "docs").rglob("*.md")), ids=by_name)
def test_a_page_can_be_reached_from_the_readme(page: Path) -> None:
    assert page.resolve() in reachable()


def reachable() -> set[Path]:
    """Every page to which links lead from README.md, over any number of pages."""
    found, waiting = set[Path](), [TREE / "README.md"]
    while waiting:
        page = waiting.pop().resolve()
        if page not in found and page.suffix == ".md" and page.exists():
            found.add(page)
            text = page.read_text(encoding="utf-8")
            waiting += [page.parent / link for link in re.findall(r"\]\((?!https?:)([^)#\s]+)", text)]
    return found


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_on_a_page(command: str) -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in (TREE / "docs").rglob("*.md"))
    assert f"loopcanary {command}" in pages


def test_the_costs_are_those_that_the_benchmarks_wrote() -> None:
    checked = subprocess.run([sys.executable, TREE / "tools/cost-tables", "--check"], check=False)
    assert checked.returncode == 0, "a table of costs is out of date: run tools/cost-tables"


def test_the_readme_is_short() -> None:
    assert len((TREE / "README.md").read_text(encoding="utf-8").splitlines()) <= 80


def test_the_api_page_is_that_of_the_docstrings() -> None:
    checked = subprocess.run([sys.executable, TREE / "tools/api-page", "--check"], check=False)
    assert checked.returncode == 0, "a page of the API is out of date: run tools/api-page"
