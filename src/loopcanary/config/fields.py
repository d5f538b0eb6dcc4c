"""The settings: a field of Config each, with the kind that follows from its type, or is said here.

docs/configuration.md, the environment variables and the keys of the files all follow from it.
"""

from __future__ import annotations

from dataclasses import fields as dataclass_fields
from typing import NamedTuple

from loopcanary.config.kinds import (
    COUNT,
    ENGINE,
    FILE,
    ISSUE_KINDS,
    LEAST,
    LINE,
    NAMES,
    PATH,
    SIZE,
    SWITCH,
    WAYS,
    SettingKind,
    duration,
)
from loopcanary.model.config import Config

ENVIRONMENT_PREFIX = "LOOPCANARY_"
_US = 1_000
_MS = 1_000_000
_S = 1_000_000_000
_DEFAULTS = {field.name: field.default for field in dataclass_fields(Config)}


class Field(NamedTuple):
    """One setting: a field of Config and the kind of its values."""

    attribute: str
    kind: SettingKind

    @property
    def key(self) -> str:
        """Its name as a keyword and in files: the field's without the unit, which the value carries."""
        return self.attribute.removesuffix("_ns")

    @property
    def variable(self) -> str:
        return ENVIRONMENT_PREFIX + self.key.upper()

    @property
    def default(self) -> object:
        """The value where no source gives one."""
        return _DEFAULTS[self.attribute]


_BY_TYPE = {
    "bool": SWITCH,
    "int": COUNT,
    "str | None": LINE,
    "tuple[str, ...]": NAMES,
    "EngineChoice": ENGINE,
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
    "log_file": FILE,
    "log_file_bytes": SIZE,
    "notify": WAYS,
    "notify_kinds": ISSUE_KINDS,
    "notify_from_ns": LEAST,
    "notify_every_ns": duration(least_ns=1 * _S),
    "webhook_file": FILE,
}
"""Of settings of which the type does not say all."""

FIELDS = tuple(
    Field(field.name, _KINDS.get(field.name) or _BY_TYPE[str(field.type)])
    for field in dataclass_fields(Config)
)

BY_KEY = {field.key: field for field in FIELDS}
