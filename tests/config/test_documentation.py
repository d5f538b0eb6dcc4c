"""The pages of settings say of every setting what the table of settings says."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from loopcanary.config import FIELDS, resolve

_DOCS = Path(__file__).parents[2] / "docs"
_PAGES = ("settings.md", "settings-store.md")
_BY_KEY = {field.key: field for field in FIELDS}
_LAST_LINE = re.compile(r"^Default: (?P<default>.+)\. Example: `(?P<file>.+)`$", re.MULTILINE)
_DEFAULTS_IN_WORDS = {
    "exit_when_hung": "none",
    "windows": "none",
    "sample_delay": "a fifth of the threshold",
    "store": "`.loopcanary` in the current folder, or the user's state folder where that cannot be written",
    "name": "its script or module",
    "notify_kinds": "all",
}


def sections():
    """Each setting's key and what its section says."""
    for page in _PAGES:
        text = (_DOCS / page).read_text(encoding="utf-8")
        for part in re.split(r"^### ", text, flags=re.MULTILINE)[1:]:
            key, _, said = part.partition("\n")
            yield key, said.partition("\n## ")[0]


def last_line(key):
    match = _LAST_LINE.search(dict(sections())[key])
    assert match is not None, key
    return match


def test_every_setting_has_one_section():
    assert sorted(key for key, _ in sections()) == sorted(_BY_KEY)


@pytest.mark.parametrize("key", _BY_KEY)
def test_a_section_says_what_the_setting_does(key):
    prose = dict(sections())[key].partition("Default:")[0]
    assert len(prose.split()) >= 4


@pytest.mark.parametrize("key", _BY_KEY)
def test_the_default_is_the_default(key):
    field = _BY_KEY[key]
    words = _DEFAULTS_IN_WORDS.get(key)
    if words is None and isinstance(field.default, bool):
        words = "on" if field.default else "off"
    elif words is None and field.default in (None, ()):
        words = "none"
    assert last_line(key)["default"] == (words or field.kind.write(field.default))


@pytest.mark.parametrize("key", _BY_KEY)
def test_the_example_means_the_same_in_every_spelling(tmp_path, key):
    example, field = last_line(key)["file"], _BY_KEY[key]
    keywords = tomllib.loads(example)
    assert list(keywords) == [key]
    (tmp_path / "loopcanary.toml").write_text(example)
    from_file = resolve({}, {}, tmp_path)
    assert resolve(keywords, {}, None) == from_file
    assert resolve({}, {field.variable: in_environment(keywords[key])}, None) == from_file
    assert getattr(from_file, field.attribute) != field.default


def in_environment(value):
    """As configuration.md says: 1 and 0, names with commas, all else as in a file."""
    if isinstance(value, bool):
        return str(int(value))
    return ",".join(value) if isinstance(value, list) else str(value)


def test_the_errors_shown_are_the_errors_given(tmp_path):
    page = (_DOCS / "configuration.md").read_text(encoding="utf-8")
    with pytest.raises(ValueError) as bare:  # noqa: PT011 - its whole text is compared
        resolve({}, {"LOOPCANARY_THRESHOLD": "100"}, None)
    assert str(bare.value) in page
    (tmp_path / "pyproject.toml").write_text('[tool.loopcanary]\ntreshold = "1s"')
    with pytest.raises(ValueError) as misspelt:  # noqa: PT011
        resolve({}, {}, tmp_path)
    assert str(misspelt.value).replace(str(tmp_path), "/srv/shop") in page
