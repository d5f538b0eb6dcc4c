"""docs/configuration.md says of every setting what the table of settings says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from loopcanary.config import FIELDS
from loopcanary.config.loading import resolve

_PAGE = Path(__file__).parents[2] / "docs" / "configuration.md"
_BY_KEY = {field.key: field for field in FIELDS}
_ROW = re.compile(r"\| (?P<default>.+) \| `(?P<keyword>.+)` \| `(?P<file>.+)` \| `(?P<variable>.+)` \|")
_DEFAULTS_IN_WORDS = {
    "sample_delay": "a fifth of the threshold",
    "store": "`.loopcanary` in the current folder, or the user's state folder where that cannot be written",
    "name": "its script or module",
    "notify_kinds": "all",
}


def sections():
    """Each setting's key and what its section says."""
    for part in re.split(r"^### ", _PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        key, _, text = part.partition("\n")
        yield key, text.partition("\n## ")[0]


def row(key):
    match = _ROW.search(dict(sections())[key])
    assert match is not None, key
    return match


def test_every_setting_has_its_section_and_every_section_its_setting():
    assert sorted(key for key, _ in sections()) == sorted(_BY_KEY)


@pytest.mark.parametrize("key", _BY_KEY)
def test_a_section_says_what_the_setting_does(key):
    prose = dict(sections())[key].partition("|")[0]
    assert len(prose.split()) >= 4


@pytest.mark.parametrize("key", _BY_KEY)
def test_the_default_is_the_default(key):
    field = _BY_KEY[key]
    words = _DEFAULTS_IN_WORDS.get(key)
    if words is None and isinstance(field.default, bool):
        words = "on" if field.default else "off"
    elif words is None and field.default in (None, ()):
        words = "none"
    assert row(key)["default"] == (words or field.kind.write(field.default))


@pytest.mark.parametrize("key", _BY_KEY)
def test_the_three_spellings_are_understood_and_mean_the_same(tmp_path, key):
    spelt, field = row(key), _BY_KEY[key]
    name, _, value = spelt["variable"].partition("=")
    assert name == field.variable
    from_environment = resolve({}, {name: value}, None)
    (tmp_path / "loopcanary.toml").write_text(spelt["file"])
    assert resolve({}, {}, tmp_path) == from_environment
    keywords = eval(f"dict({spelt['keyword']})")
    assert list(keywords) == [key]
    assert resolve(keywords, {}, None) == from_environment
    assert getattr(from_environment, field.attribute) != field.default


def test_the_errors_shown_are_the_errors_given(tmp_path):
    page = _PAGE.read_text(encoding="utf-8")
    with pytest.raises(ValueError) as bare:  # noqa: PT011 - its whole text is compared
        resolve({}, {"LOOPCANARY_THRESHOLD": "100"}, None)
    assert str(bare.value) in page
    (tmp_path / "pyproject.toml").write_text('[tool.loopcanary]\ntreshold = "1s"')
    with pytest.raises(ValueError) as misspelt:  # noqa: PT011
        resolve({}, {}, tmp_path)
    assert str(misspelt.value).replace(str(tmp_path), "/srv/shop") in page
