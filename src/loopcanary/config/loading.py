"""Finds the settings: keyword > environment > file > default."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from loopcanary.config.errors import ConfigError
from loopcanary.config.fields import BY_KEY, ENVIRONMENT_PREFIX, FIELDS
from loopcanary.config.files import SettingsFile, find_settings_file
from loopcanary.config.sources import ABSENT, Sources
from loopcanary.model.config import Config

WEBHOOK_URL = f"{ENVIRONMENT_PREFIX}WEBHOOK_URL"
"""A secret, and so no setting: settings are written and shown."""
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
        folder: Path | None = Path.cwd()
    except OSError:
        folder = None  # The current folder has been removed: there are no files to find.
    return resolve(keywords, os.environ, folder)


def resolve(keywords: Mapping[str, object], environment: Mapping[str, str], folder: Path | None) -> Config:
    """`load` with its sources as arguments; no `folder`: no files."""
    problems: list[ConfigError] = []
    sources = Sources(
        keywords=keywords,
        environment=environment,
        file=_file(folder, problems),
        folder=folder or Path(),
    )
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


def _text(value: object, write: Any) -> str:
    return "" if value is None else write(value)


def _file(folder: Path | None, problems: list[ConfigError]) -> SettingsFile | None:
    try:
        return None if folder is None else find_settings_file(folder)
    except ConfigError as error:
        problems.append(error)
        return None


def _values(sources: Sources, problems: list[ConfigError]) -> dict[str, Any]:
    """Every value that some source has and that can be used."""
    values: dict[str, Any] = {}
    for field in FIELDS:
        try:
            value = sources.value(field)
        except ConfigError as error:
            problems.append(error)
            continue
        if value is not ABSENT:
            values[field.attribute] = value
    return values


def _with_sound_delay(config: Config, sources: Sources, problems: list[ConfigError]) -> Config:
    """A first sample at or after the threshold would leave most stalls without one."""
    delay_ns, write = config.sample_delay_ns, BY_KEY["sample_delay"].kind.write
    if delay_ns is None or delay_ns < config.threshold_ns:
        return config
    problems.append(
        ConfigError(
            key="sample_delay",
            value=write(delay_ns),
            place=sources.place("sample_delay"),
            problem=f"{write(delay_ns)} is not below the threshold of {write(config.threshold_ns)}",
            next_step="write less than the threshold, or leave it out for a fifth of it",
        )
    )
    return replace(config, sample_delay_ns=None)


def _misspelt_variables(environment: Mapping[str, str]) -> Iterator[str]:
    """Variables that look like a misspelt setting. No error: the prefix may have other users."""
    known = {field.variable for field in FIELDS}
    known.add(WEBHOOK_URL)
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
