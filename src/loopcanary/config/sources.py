"""The sources of settings of one load, highest first: keywords, environment, one file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from loopcanary.config.errors import ConfigError, UnfitValueError
from loopcanary.config.fields import BY_KEY, Field
from loopcanary.config.files import SettingsFile

ABSENT = object()
"""No source has the setting."""


class _Finding(NamedTuple):
    """What one source says of one setting."""

    raw: object
    place: str
    folder: Path
    """Where a relative path starts."""
    is_text: bool = False


class Sources:
    """Where settings come from. `folder`: where relative paths of keywords and environment start."""

    def __init__(
        self,
        *,
        keywords: Mapping[str, object],
        environment: Mapping[str, str],
        file: SettingsFile | None,
        folder: Path,
    ) -> None:
        self._keywords = {key: value for key, value in keywords.items() if value is not None}
        self._environment = environment
        self._file = file
        self._folder = folder

    def value(self, field: Field) -> object:
        """The value of the highest source that has one, ABSENT without any. Raises ConfigError."""
        found = self._find(field)
        if found is None:
            return ABSENT
        try:
            return _read(field, found)
        except UnfitValueError as unfit:
            raise ConfigError(
                key=field.key,
                value=found.raw,
                place=found.place,
                problem=unfit.problem,
                next_step=unfit.next_step,
            ) from None

    def place(self, key: str) -> str:
        """Where the value in force of a known key comes from, for people."""
        found = self._find(BY_KEY[key])
        return f"default of {key}" if found is None else found.place

    def unknown_keys(self) -> Iterator[ConfigError]:
        """An error for each key of the keywords and the file that is no setting."""
        for key, value in self._keywords.items():
            if key not in BY_KEY:
                yield _unknown(key, value, f"keyword {key}")
        if self._file is None:
            return
        for key, value in self._file.settings.items():
            if key not in BY_KEY:
                yield _unknown(key, value, self._file.place(key))

    def _find(self, field: Field) -> _Finding | None:
        key, variable, file = field.key, field.variable, self._file
        if key in self._keywords:
            return _Finding(self._keywords[key], f"keyword {key}", self._folder)
        if variable in self._environment:
            place = f"environment variable {variable}"
            return _Finding(self._environment[variable], place, self._folder, is_text=True)
        if file is not None and key in file.settings:
            return _Finding(file.settings[key], file.place(key), file.path.parent)
        return None


def _read(field: Field, found: _Finding) -> object:
    if found.is_text:
        text = str(found.raw)
        # Empty is the default, whatever a file says: that is how a child is told "not given".
        value = field.kind.parse(text) if text.strip() else ABSENT
    else:
        value = field.kind.take(found.raw)
    return (found.folder / value).absolute() if isinstance(value, Path) else value


def _unknown(key: str, value: object, place: str) -> ConfigError:
    import difflib  # only a misspelt setting pays for it

    near = difflib.get_close_matches(key.replace("-", "_").lower(), BY_KEY, n=1, cutoff=0.5)
    next_step = f"did you mean {near[0]}?" if near else "docs/configuration.md has the list of settings"
    return ConfigError(key=key, value=value, place=place, problem="no such setting", next_step=next_step)
