"""The settings in force: keyword > environment > loopcanary.toml or pyproject.toml > default.

docs/reference/settings.md has every setting; `FIELDS` is the table behind it. Each watched program loads
this; it loads more if a setting is wrong, or if there is a file.
"""

from __future__ import annotations

import os

from loopcanary.config.kinds import (
    CONSOLE,
    COUNT,
    ENGINE,
    FILE,
    ISSUE_KINDS,
    LABELS,
    LEAST,
    LINE,
    NAMES,
    PATH,
    RETENTION,
    SIGNAL_NAMES,
    SIZE,
    SWITCH,
    WAYS,
    SettingKind,
    UnfitValueError,
    duration,
)
from loopcanary.facts import is_anothers, is_ours
from loopcanary.model.config import STORE_NAME, Config
from loopcanary.whose_exception import ours_of

TYPE_CHECKING = False  # typing is not loaded for it
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from loopcanary.config.files import ConfigError as ConfigError
    from loopcanary.config.files import SettingsFile

ENVIRONMENT_PREFIX = "LOOPCANARY_"
_US = 1_000
_MS = 1_000_000
_S = 1_000_000_000


class Field:
    def __init__(self, attribute: str, kind: SettingKind) -> None:
        self.attribute = attribute
        self.kind = kind
        self.key = attribute.removesuffix("_ns")
        """The setting's name: the field's without the unit, which the value carries."""
        self.variable = ENVIRONMENT_PREFIX + self.key.upper()

    @property
    def default(self) -> object:
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
    "job_threshold_ns": duration(least_ns=1 * _MS),
    "store": PATH,
    "retention": RETENTION,
    "labels": LABELS,
    "console": CONSOLE,
    "methods_ring": SIZE,
    "slow_method_ns": duration(least_ns=1 * _MS),
    "exit_when_hung_ns": duration(least_ns=1 * _S, may_be_none=True),
    "windows_ns": duration(least_ns=100 * _MS, may_be_none=True),
    "startup_threshold_ns": duration(least_ns=1 * _MS),
    "log_file": FILE,
    "flight_dir": PATH,
    "signals": SIGNAL_NAMES,
    "notify": WAYS,
    "notify_kinds": ISSUE_KINDS,
    "engine": ENGINE,
    "notify_from_ns": LEAST,
    "notify_every_ns": duration(least_ns=1 * _S),
    "webhook_file": FILE,
}
"""Kinds of the settings whose type does not give the kind."""

FIELDS = tuple(
    Field(name, _KINDS.get(name) or _BY_TYPE[kind]) for name, kind in Config.__annotations__.items()
)

BY_KEY = {field.key: field for field in FIELDS}

WEBHOOK_URL = f"{ENVIRONMENT_PREFIX}WEBHOOK_URL"
"""A secret, and therefore not a setting: settings are written and shown."""
_NO_SETTINGS = ("DEBUG", "PLUGINS", "ROOT_PID", "RUN_NS", "RUN_PID", "RUN_STDERR", "TRUST", "WEBHOOK_URL")
"""Variables with our prefix that others read."""
_FILES = ("loopcanary.toml", "pyproject.toml")
_HARMLESS = frozenset(
    {
        *("threshold", "sample_delay", "sample_interval", "job_threshold"),
        *("name", "version", "labels"),
        *("concern", "only_concern", "ignore", "delete_ignored", "stalls_per_minute", "slow_method"),
        *("engine", "keeper", "follow_children", "while_debugging", "production", "console"),
        *("startup", "startup_threshold", "locks", "windows"),
    }
)
"""Settings of what is seen and how it is called. Files that another user can change may have these only: the
others write elsewhere, keep or remove what is stored, notify, or change the program."""
_PROBLEMS_MAX = 10
_PROBLEM_CHARS = 300
_CI = "ci"
"""The table of `loopcanary ci`, beside the settings."""
_logged: set[str] = set()


def load(*, config: str | None = None, **keywords: object) -> Config:
    """The settings in force in this process. Any thread.

    `keywords` are the keys of docs/reference/settings.md; None means not given. The environment comes next,
    then the file `config`, or the nearest loopcanary.toml or `[tool.loopcanary]` upwards from the current
    folder, then the default.

    ConfigError: a value cannot be used, or a key does not exist. With `production` on, in any source, these
    are logged once, and the default is kept.
    """
    try:
        folder: str | None = os.getcwd()
    except ours_of(OSError):
        folder = None  # The current folder has been removed: there are no files to find.
    return resolve(keywords, os.environ, folder, config)


def resolve(
    keywords: Mapping[str, object],
    environment: Mapping[str, str],
    folder: str | None,
    named: str | None = None,
) -> Config:
    """`load` with its sources as arguments; without a folder no file is looked for. `named` is the file."""
    problems: list[ConfigError] = []
    given = {key: value for key, value in keywords.items() if value is not None}
    if named is not None:
        file = _read_file(named, environment, problems, is_named=True)
    elif all(field.variable in environment for field in FIELDS):
        file = None  # this is a child, whose parent has read the file
    else:
        file = _file(folder, environment, problems)
    sources = _Sources(given, environment, file, folder or "")
    config = _with_sound_delay(Config(**_values(sources, problems)), sources, problems)
    problems.extend(sources.unknown_keys())
    sources.tell_not_taken()
    why = "as production is on"
    if problems and not config.production:
        if file is None or file.is_believed:
            raise problems[0]
        resolve(keywords, environment, None)  # raises what is wrong without that file, too
        why = f"as another user can change {file.path}"
    for problem in problems[:_PROBLEMS_MAX]:
        _log_once(f"{_printable(str(problem))} (ignored, {why})")
    for hint in _misspelt_variables(environment):
        _log_once(hint)
    return config


def settings_as_environment(config: Config) -> dict[str, str]:
    """Environment variables with which `load` gives the same settings in another process and folder.

    They include defaults and empty ones, so that a child in another folder does not find a file that its
    parent did not see. A store of None stays "the child's own default": for a shared store, put that into
    `config` first.
    """
    values = ((field, getattr(config, field.attribute)) for field in FIELDS)
    return {field.variable: "" if value is None else field.kind.write(value) for field, value in values}


def usual_store(config: Config) -> str | None:
    """The store's absolute folder, as named by the settings or in its usual place; None: it cannot be
    written, or is another user's (store.location knows more)."""
    folder = os.path.abspath(STORE_NAME if config.store is None else config.store)
    if not is_ours(folder):
        from loopcanary.whose_folder import fits  # only for root in other users' folders

        if not fits(folder):
            return None
    if config.store is not None:
        return config.store
    if is_anothers(folder):
        return None
    place = folder if os.path.lexists(folder) else os.path.dirname(folder)
    return folder if os.path.isdir(place) and os.access(place, os.W_OK | os.X_OK) else None


class _Finding:
    """The value of a setting in one source. A relative path starts at `folder`."""

    def __init__(self, raw: object, place: str, folder: str, *, is_text: bool = False) -> None:
        self.raw = raw
        self.place = place
        self.folder = folder
        self.is_text = is_text


class _Sources:
    """The sources, highest first. Relative paths of the first two start at `folder`."""

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
        if file is not None and key in file.settings and (file.is_believed or key in _HARMLESS):
            return _Finding(file.settings[key], file.place(key), os.path.dirname(file.path))
        return None

    def unknown_keys(self) -> Iterator[ConfigError]:
        """An error for each unknown key of the keywords and the file."""
        keys = [(key, value, f"keyword {key}") for key, value in self._keywords.items()]
        if self._file is not None:
            settings = self._file.settings.items()
            keys += [(key, value, self._file.place(key)) for key, value in settings if key != _CI]
        misspelt = [one for one in keys if one[0] not in BY_KEY]
        for key, value, place in misspelt[:_PROBLEMS_MAX]:
            from loopcanary.config.files import unknown

            yield unknown(key, value, place, BY_KEY)

    def tell_not_taken(self) -> None:
        """Logs the settings that are not taken from a file that is not believed."""
        file = self._file
        if file is None or file.is_believed:
            return
        left = [key for key, field in BY_KEY.items() if key in file.settings and self.find(field) is None]
        if left:
            _log_once(file.not_taken(left))


def _values(sources: _Sources, problems: list[ConfigError]) -> dict[str, Any]:
    """The values of all sources that can be used."""
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
    from loopcanary.config.files import ConfigError

    return ConfigError(key=key, value=value, place=place, problem=problem, next_step=next_step)


def _file(
    folder: str | None, environment: Mapping[str, str], problems: list[ConfigError]
) -> SettingsFile | None:
    here, above = "" if folder is None else os.path.abspath(folder), ""
    while here != above:
        if any(os.path.isfile(f"{here}/{name}") for name in _FILES):
            return _read_file(here, environment, problems)
        here, above = os.path.dirname(here), here
    return None


def _read_file(
    path: str, environment: Mapping[str, str], problems: list[ConfigError], *, is_named: bool = False
) -> SettingsFile | None:
    from loopcanary.config.files import TRUST, ConfigError, find_settings_file, read_settings_file

    try:
        found = read_settings_file(path) if is_named else find_settings_file(path, environment.get(TRUST))
    except ConfigError as error:
        problems.append(error)
        return None
    if found is not None and found.problem is not None:
        problems.append(found.problem)
    return found


def _with_sound_delay(config: Config, sources: _Sources, problems: list[ConfigError]) -> Config:
    """Drops a sample delay that is not below the threshold: most stalls would have no sample."""
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
    """Variables that look like misspelt settings, which are not errors: the prefix may have other users."""
    known = {field.variable for field in FIELDS}
    known.update(ENVIRONMENT_PREFIX + name for name in _NO_SETTINGS)
    unknown = [name for name in environment if name.startswith(ENVIRONMENT_PREFIX) and name not in known]
    if not unknown:
        return
    import difflib  # only a variable that is no setting pays for it

    for name in unknown:
        for near in difflib.get_close_matches(name, known, n=1, cutoff=0.85):
            yield f"environment variable {name}: no such setting; did you mean {near}?"


def _printable(text: str) -> str:
    from loopcanary.words.text import printable  # only where something is wrong

    return printable(text, _PROBLEM_CHARS)


def _log_once(text: str) -> None:
    if text in _logged:
        return
    _logged.add(text)
    import logging  # only where there is something to say

    logging.getLogger("loopcanary").warning("%s", text)


def __getattr__(name: str) -> Any:
    if name == "ConfigError":
        from loopcanary.config.files import ConfigError

        return ConfigError
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
