"""Every link of the pages leads somewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TREE = Path(__file__).resolve().parents[2]
PAGES = sorted(
    [
        *TREE.glob("*.md"),
        *(TREE / "docs").rglob("*.md"),
        *(TREE / "examples").rglob("*.md"),
        TREE / "benchmarks/zoo/README.md",
    ]
)
_LINK = re.compile(r"!?\[[^\]]*\]\((?!https?:|mailto:)([^)#\s]*)(#[^)\s]*)?\)")
_CODE = re.compile(r"^```.*?^```|^ {4}.*?$|`[^`\n]*`", re.MULTILINE | re.DOTALL)


def anchor(heading: str) -> str:
    """The anchor that GitHub gives to a heading."""
    plain = re.sub(r"[^\w\- ]", "", heading.strip().lower())
    return "#" + plain.replace(" ", "-")


def anchors(page: Path) -> set[str]:
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return {anchor(heading) for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE)}


def broken(page: Path) -> Iterator[str]:
    for path, heading in _LINK.findall(_CODE.sub("", page.read_text(encoding="utf-8"))):
        target = (page.parent / path) if path else page
        if not target.exists() or (heading and target.suffix == ".md" and heading not in anchors(target)):
            yield path + heading


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(TREE).as_posix())
def test_every_link_resolves(page: Path) -> None:
    assert list(broken(page)) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(TREE).as_posix())
def test_every_path_of_the_tree_exists(page: Path) -> None:
    named = re.findall(
        r"`((?:native|src|tests|tools|benchmarks|examples)/[\w./-]+)`", page.read_text(encoding="utf-8")
    )
    assert [path for path in named if not (TREE / path).exists()] == []


def test_tests_that_findings_name_are_there():
    named = set(re.findall(r"[\w/]+/test_\w+\.(?:py|c)\b", (TREE / "docs/internals/findings.md").read_text()))
    assert named
    assert {
        name for name in named if not any((TREE / root / name).exists() for root in ("tests", "native/tests"))
    } == set()
