"""Words that have to be read twice are in no page, docstring or message."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

TREE = Path(__file__).resolve().parents[2]
PACKAGE = TREE / "src/loopcanary"
BANNED = re.compile(
    r"\b(whom|whoever|whomever|somebody|told of|tells? of|telling of|so long|stands(?! (in )?for\b))\b(?!-)",
    re.IGNORECASE,
)
PAGES = sorted(
    [*TREE.glob("*.md"), *(TREE / "docs").rglob("*.md"), *(TREE / "examples").rglob("*.md")],
)
# The glossary lists words that are not to be used.
_ABOUT_WORDS = {"docs/glossary.md"}
NAME_MAX = 60


def words_of(text: str) -> list[str]:
    prose = re.sub(r"^```.*?^```|`[^`\n]*`", "", text, flags=re.MULTILINE | re.DOTALL)
    return [found[0] for found in BANNED.finditer(" ".join(prose.split()))]


def strings_of(path: Path) -> Iterator[str]:
    """Docstrings, messages and all other text of a module."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def in_pages() -> Counter[str]:
    found = Counter[str]()
    for page in PAGES:
        name = page.relative_to(TREE).as_posix()
        if name not in _ABOUT_WORDS:
            found[name] = len(words_of(page.read_text(encoding="utf-8")))
    return found


def in_package() -> Counter[str]:
    found = Counter[str]()
    for path in PACKAGE.rglob("*.py"):
        folder = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        found[folder] += sum(len(words_of(text)) for text in strings_of(path))
    for path in PACKAGE.rglob("*.html"):
        found["ui"] += len(words_of(path.read_text(encoding="utf-8")))
    return found


@pytest.mark.parametrize("found", [in_pages, in_package])
def test_no_word_has_to_be_read_twice(found) -> None:
    counts = found()
    assert {name: count for name, count in counts.items() if count} == {}


def test_names_of_tests_are_short() -> None:
    names = {
        node.name
        for path in (TREE / "tests").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    }
    assert {name for name in names if len(name) > NAME_MAX} == set()
