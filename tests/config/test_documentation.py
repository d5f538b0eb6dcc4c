"""The tables of settings say of every setting what the code says."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib

import pytest

from loopcanary.config import _HARMLESS, FIELDS, resolve

_BY_KEY = {field.key: field for field in FIELDS}
_ROW = re.compile(r"^\| `(?P<example>(?P<key>\w+) = .+?)` \| ", re.MULTILINE)


@pytest.fixture(scope="module")
def examples(tree):
    """The example of each setting, by its key."""
    pages = ("docs/reference/settings.md", "docs/internals/settings.md")
    text = "".join((tree / page).read_text(encoding="utf-8") for page in pages)
    return {row["key"]: row["example"] for row in _ROW.finditer(text)}


@pytest.fixture(scope="module")
def configuration(tree):
    return (tree / "docs/reference/configuration.md").read_text(encoding="utf-8")


def test_the_tables_are_those_of_the_code(tree):
    checked = subprocess.run([sys.executable, tree / "tools/settings-pages", "--check"], check=False)
    assert checked.returncode == 0, "a table of settings is out of date: run tools/settings-pages"


def test_every_setting_has_one_row(examples):
    assert sorted(examples) == sorted(_BY_KEY)


@pytest.mark.parametrize("key", _BY_KEY)
def test_the_example_means_the_same_in_every_spelling(examples, tmp_path, key):
    example, field = examples[key], _BY_KEY[key]
    keywords = tomllib.loads(example)
    (tmp_path / "loopcanary.toml").write_text(example)
    from_file = resolve({}, {}, tmp_path)
    assert resolve(keywords, {}, None) == from_file
    assert resolve({}, {field.variable: in_environment(keywords[key])}, None) == from_file
    assert getattr(from_file, field.attribute) != field.default


def test_what_is_not_taken_from_files_of_others_is_named(configuration):
    part = configuration.partition("## Files of other users\n")[2].partition("\nWhat is wrong")[0]
    named = re.findall(r"`(\w+)`", part.partition("\n- of the table")[0].partition(":\n\n- ")[2])
    assert sorted([*named, *_HARMLESS]) == sorted(_BY_KEY)


def in_environment(value):
    """As configuration.md says: 1 and 0, names with commas, all else as in a file."""
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, dict):
        return ",".join(map("=".join, value.items()))
    return ",".join(value) if isinstance(value, list) else str(value)


def test_the_errors_shown_are_the_errors_given(configuration, tmp_path):
    with pytest.raises(ValueError) as bare:  # noqa: PT011 - its whole text is compared
        resolve({}, {"LOOPCANARY_THRESHOLD": "100"}, None)
    assert str(bare.value) in configuration
    (tmp_path / "pyproject.toml").write_text('[tool.loopcanary]\ntreshold = "1s"')
    with pytest.raises(ValueError) as misspelt:  # noqa: PT011
        resolve({}, {}, tmp_path)
    assert str(misspelt.value).replace(str(tmp_path), "/srv/shop") in configuration
