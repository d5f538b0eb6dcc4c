"""Words that have to be read twice are in no page, docstring, comment or message."""

from __future__ import annotations

import ast
import io
import re
import tokenize
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
    [
        *TREE.glob("*.md"),
        *(page for part in ("docs", "examples", "benchmarks") for page in (TREE / part).rglob("*.md")),
    ],
)
# The glossary lists words that are not to be used.
_ABOUT_WORDS = {"docs/glossary.md"}
NAME_MAX = 60
# Programs of ours beside the package. Strings of tests are what programs said, and are not judged.
_SOURCES = ("src", "native", "tests", "tools", "benchmarks", "examples")
_C_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_BORDER = re.compile(r"^\s*(\*|#|//)", re.MULTILINE)
_BETWEEN = re.compile(r"[\s#*/]+")
_FOREIGN = {"vendor"}


def words_of(text: str) -> list[str]:
    prose = re.sub(r"^```.*?^```|`[^`\n]*`", "", text, flags=re.MULTILINE | re.DOTALL)
    return [found[0] for found in BANNED.finditer(" ".join(prose.split()))]


def strings_of(path: Path) -> Iterator[str]:
    """Docstrings, messages and all other text of a module."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def comments_of(path: Path, text: str) -> Iterator[str]:
    """Docstrings and comments of a source; lines of `#` that follow each other are one text."""
    if path.suffix == ".py":
        yield from docstrings_of(text)
        lines = {
            token.start[0]: token.string
            for token in tokenize.generate_tokens(io.StringIO(text).readline)
            if token.type == tokenize.COMMENT
        }
        alone = "\n.\n"
        yield "\n".join(text if line - 1 in lines else alone + text for line, text in lines.items())
    else:
        yield from _C_COMMENT.findall(text)


def docstrings_of(text: str) -> Iterator[str]:
    """Strings that are statements: of modules, classes and functions, and those below a value."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield str(node.value.value)


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


def in_comments() -> Counter[str]:
    found = Counter[str]()
    for source in _SOURCES:
        for path in (TREE / source).rglob("*"):
            if path.suffix in {".py", ".c", ".h", ".js", ".css"} and not _FOREIGN & {*path.parts}:
                text = path.read_text(encoding="utf-8")
                if not BANNED.search(_BETWEEN.sub(" ", text)):  # most: to read a file's tokens takes long
                    continue
                texts = [_BORDER.sub("", text) for text in comments_of(path, text)]
                found[path.relative_to(TREE).as_posix()] += sum(len(words_of(text)) for text in texts)
    return found


@pytest.mark.parametrize("found", [in_pages, in_package, in_comments])
def test_no_word_has_to_be_read_twice(found) -> None:
    counts = found()
    assert {name: count for name, count in counts.items() if count} == {}


def test_names_of_tests_are_short_and_plain() -> None:
    names = {
        found[1]
        for path in (TREE / "tests").rglob("*.py")
        for found in re.finditer(
            r"^ *(?:async )?def (test_\w*)", path.read_text(encoding="utf-8"), re.MULTILINE
        )
    }
    unclear = re.compile(r"_(told|whom|whoever|somebody|nobody|stands)s?(_|$)")
    assert {name for name in names if len(name) > NAME_MAX or unclear.search(name)} == set()
