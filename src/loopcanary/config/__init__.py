"""The settings in force: keyword > environment > loopcanary.toml or pyproject.toml > default.

docs/configuration.md has every setting; `FIELDS` is the table behind it. Each watched program loads this:
more is loaded where a setting is wrong, or where there is a file.
"""

from __future__ import annotations

import os

from loopcanary.config.kinds import (
    COUNT,
    ENGINE,
    FILE,
    ISSUE_KINDS,
    LEAST,
    LINE,
    NAMES,
    PATH,
    SIGNAL_NAMES,
    SIZE,
    SWITCH,
    WAYS,
    SettingKind,
    UnfitValueError,
    duration,
)
from loopcanary.model.config import STORE_NAME, Config

TYPE_CHECKING = False  # typing is not loaded for it
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from loopcanary.config.errors import ConfigError as ConfigError
    from loopcanary.config.files import SettingsFile

ENVIRONMENT_PREFIX = "LOOPCANARY_"
_US = 1_000
_MS = 1_000_000
_S = 1_000_000_000


class Field:
    """One setting: a field of Config and the kind of its values."""

    def __init__(self, attribute: str, kind: SettingKind) -> None:
        self.attribute = attribute
        self.kind = kind
        self.key = attribute.removesuffix("_ns")
        """Its name as a keyword and in files: the field's without the unit, which the value carries."""
        self.variable = ENVIRONMENT_PREFIX + self.key.upper()

    @property
    def default(self) -> object:
        """The value where no source gives one."""
        return getattr(Config, self.attribute)


_BY_TYPE = {
    "bool": SWITCH,
    "int": COUNT,
    "str | None": LINE,
    "tuple[str, ...]": NAMES,
}
_KINDS = {
    "threshold_ns": duration(least_ns=1 * _MS),
    "sample_delay_ns": duration(least_ns=100 * _US),
    "sample_interval_ns": duration(least_ns=100 * _US),
    "request_threshold_ns": duration(least_ns=1 * _MS),
    "task_threshold_ns": duration(least_ns=1 * _MS),
    "store": PATH,
    "retention_age_ns": duration(least_ns=1 * _S),
    "retention_bytes": SIZE,
    "methods_ring": SIZE,
    "slow_method_ns": duration(least_ns=1 * _MS),
    "exit_when_hung_ns": duration(least_ns=1 * _S, may_be_none=True),
    "windows_ns": duration(least_ns=100 * _MS, may_be_none=True),
    "startup_cold_ns": duration(least_ns=1 * _MS),
    "startup_warm_ns": duration(least_ns=1 * _MS),
    "log_file": FILE,
    "flight_dir": PATH,
    "log_file_bytes": SIZE,
    "signals": SIGNAL_NAMES,
    "notify": WAYS,
    "notify_kinds": ISSUE_KINDS,
    "engine": ENGINE,
    "notify_from_ns": LEAST,
    "notify_every_ns": duration(least_ns=1 * _S),
    "webhook_file": FILE,
}
"""Of settings of which the type does not say all."""

FIELDS = tuple(
    Field(name, _KINDS.get(name) or _BY_TYPE[kind]) for name, kind in Config.__annotations__.items()
)

BY_KEY = {field.key: field for field in FIELDS}

WEBHOOK_URL = f"{ENVIRONMENT_PREFIX}WEBHOOK_URL"
"""A secret, and so no setting: settings are written and shown."""
_NO_SETTINGS = ("DEBUG", "PLUGINS", "ROOT_PID", "RUN_NS", "RUN_PID", "RUN_STDERR", "WEBHOOK_URL")
"""Variables with our prefix that others read."""
_FILES = ("loopcanary.toml", "pyproject.toml")
_CI = "ci"
"""The table of `loopcanary ci` beside the settings."""
_logged: set[str] = set()


def load(**keywords: object) -> Config:
    """The settings in force in this process.

    `keywords` are the keys of docs/configuration.md; None means not given. The environment comes next,
    then the nearest loopcanary.toml or `[tool.loopcanary]` upwards from the current folder, then the
    default.

    Raises ConfigError for a value that cannot be used or a key that does not exist; where `production`
    is on (in any source) such are logged once and the default is kept. Any thread.
    """
    try:
        folder: str | None = os.getcwd()
    except OSError:
        folder = None  # The current folder has been removed: there are no files to find.
    return resolve(keywords, os.environ, folder)


def resolve(keywords: Mapping[str, object], environment: Mapping[str, str], folder: str | None) -> Config:
    """`load` with its sources as arguments; no `folder`: no files."""
    problems: list[ConfigError] = []
    given = {key: value for key, value in keywords.items() if value is not None}
    sources = _Sources(given, environment, _file(folder, problems), folder or "")
    config = _with_sound_delay(Config(**_values(sources, problems)), sources, problems)
    problems.extend(sources.unknown_keys())
    if problems and not config.production:
        raise problems[0]
    for problem in problems:
        _log_once(f"{problem} (ignored, as production is on)")
    for hint in _misspelt_variables(environment):
        _log_once(hint)
    return config


def settings_as_environment(config: Config) -> dict[str, str]:
    """Environment variables with which `load` gives the same settings in another process and folder.

    All settings are written, defaults and empty ones too: a child with another current folder must not
    find a file that its parent did not see. A store of None stays "the child's own default"; put the
    store in force into `config` first where children shall share it.
    """
    return {field.variable: _text(getattr(config, field.attribute), field.kind.write) for field in FIELDS}


def usual_store(config: Config) -> str | None:
    """The store's folder, absolute, as the settings name it or in its usual place; None: that cannot be
    written (store.location knows more)."""
    if config.store is not None:
        return config.store
    folder = os.path.abspath(STORE_NAME)
    place = folder if os.path.lexists(folder) else os.path.dirname(folder)
    return folder if os.path.isdir(place) and os.access(place, os.W_OK | os.X_OK) else None


class _Finding:
    """What one source says of one setting. `folder`: where a relative path starts."""

    def __init__(self, raw: object, place: str, folder: str, *, is_text: bool = False) -> None:
        self.raw = raw
        self.place = place
        self.folder = folder
        self.is_text = is_text


class _Sources:
    """Where settings come from, highest first. `folder`: where relative paths of the first two start."""

    def __init__(
        self,
        keywords: Mapping[str, object],
        environment: Mapping[str, str],
        file: SettingsFile | None,
        folder: str,
    ) -> None:
        self._keywords = keywords
        self._environment = environment
        self._file = file
        self._folder = folder

    def find(self, field: Field) -> _Finding | None:
        key, variable, file = field.key, field.variable, self._file
        if key in self._keywords:
            return _Finding(self._keywords[key], f"keyword {key}", self._folder)
        if variable in self._environment:
            place = f"environment variable {variable}"
            return _Finding(self._environment[variable], place, self._folder, is_text=True)
        if file is not None and key in file.settings:
            return _Finding(file.settings[key], file.place(key), os.path.dirname(file.path))
        return None

    def unknown_keys(self) -> Iterator[ConfigError]:
        """An error for each key of the keywords and the file that is no setting."""
        keys = [(key, value, f"keyword {key}") for key, value in self._keywords.items()]
        if self._file is not None:
            settings = self._file.settings.items()
            keys += [(key, value, self._file.place(key)) for key, value in settings if key != _CI]
        for key, value, place in keys:
            if key not in BY_KEY:
                from loopcanary.config.errors import unknown

                yield unknown(key, value, place, BY_KEY)


def _values(sources: _Sources, problems: list[ConfigError]) -> dict[str, Any]:
    """Every value that some source has and that can be used."""
    values: dict[str, Any] = {}
    for field in FIELDS:
        found = sources.find(field)
        # Empty means the default, also where a file has a value: so a child knows "not given".
        if found is None or (found.is_text and not str(found.raw).strip()):
            continue
        try:
            values[field.attribute] = _read(field, found)
        except UnfitValueError as unfit:
            problems.append(_error(field.key, found.raw, found.place, unfit.problem, unfit.next_step))
    return values


def _read(field: Field, found: _Finding) -> object:
    value = field.kind.parse(str(found.raw)) if found.is_text else field.kind.take(found.raw)
    is_path = field.kind.is_path and isinstance(value, str)
    return os.path.abspath(os.path.join(found.folder, value)) if is_path else value  # type: ignore[call-overload]


def _error(key: str, value: object, place: str, problem: str, next_step: str) -> ConfigError:
    from loopcanary.config.errors import ConfigError

    return ConfigError(key=key, value=value, place=place, problem=problem, next_step=next_step)


def _text(value: object, write: Any) -> str:
    return "" if value is None else write(value)


def _file(folder: str | None, problems: list[ConfigError]) -> SettingsFile | None:
    here, above = "" if folder is None else os.path.abspath(folder), ""
    while here != above:
        if any(os.path.isfile(f"{here}/{name}") for name in _FILES):
            return _read_file(here, problems)
        here, above = os.path.dirname(here), here
    return None


def _read_file(folder: str, problems: list[ConfigError]) -> SettingsFile | None:
    from loopcanary.config.errors import ConfigError
    from loopcanary.config.files import find_settings_file

    try:
        return find_settings_file(folder)
    except ConfigError as error:
        problems.append(error)
        return None


def _with_sound_delay(config: Config, sources: _Sources, problems: list[ConfigError]) -> Config:
    """A first sample at or after the threshold would leave most stalls without one."""
    delay_ns, field = config.sample_delay_ns, BY_KEY["sample_delay"]
    if delay_ns is None or delay_ns < config.threshold_ns:
        return config
    found, write = sources.find(field), field.kind.write
    problem = f"{write(delay_ns)} is not below the threshold of {write(config.threshold_ns)}"
    next_step = "write less than the threshold, or leave it out for a fifth of it"
    place = "default of sample_delay" if found is None else found.place
    problems.append(_error(field.key, write(delay_ns), place, problem, next_step))
    return config.replaced(sample_delay_ns=None)


def _misspelt_variables(environment: Mapping[str, str]) -> Iterator[str]:
    """Variables that look like a misspelt setting. No error: the prefix may have other users."""
    known = {field.variable for field in FIELDS}
    known.update(ENVIRONMENT_PREFIX + name for name in _NO_SETTINGS)
    unknown = [name for name in environment if name.startswith(ENVIRONMENT_PREFIX) and name not in known]
    if not unknown:
        return
    import difflib  # only a variable that is no setting pays for it

    for name in unknown:
        for near in difflib.get_close_matches(name, known, n=1, cutoff=0.85):
            yield f"environment variable {name}: no such setting; did you mean {near}?"


def _log_once(text: str) -> None:
    if text in _logged:
        return
    _logged.add(text)
    import logging  # only where there is something to say

    logging.getLogger("loopcanary").warning("%s", text)


def __getattr__(name: str) -> Any:
    if name == "ConfigError":
        from loopcanary.config.errors import ConfigError

        return ConfigError
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
