"""The one table of settings: which field of Config, which kind, which least value.

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


FIELDS = (
    Field("threshold_ns", duration(least_ns=1 * _MS)),
    Field("sample_delay_ns", duration(least_ns=100 * _US)),
    Field("sample_interval_ns", duration(least_ns=100 * _US)),
    Field("request_threshold_ns", duration(least_ns=1 * _MS)),
    Field("task_threshold_ns", duration(least_ns=1 * _MS)),
    Field("store", PATH),
    Field("name", LINE),
    Field("concern", NAMES),
    Field("only_concern", SWITCH),
    Field("ignore", NAMES),
    Field("keep_ignored", SWITCH),
    Field("quiet", SWITCH),
    Field("console", SWITCH),
    Field("engine", ENGINE),
    Field("follow_children", SWITCH),
    Field("while_debugging", SWITCH),
    Field("production", SWITCH),
    Field("fail_on_stall", SWITCH),
    Field("stalls_per_minute", COUNT),
    Field("retention_age_ns", duration(least_ns=1 * _S)),
    Field("retention_stalls", COUNT),
    Field("retention_bytes", SIZE),
    Field("version", LINE),
    Field("qualifier", LINE),
    Field("user", LINE),
    Field("network", LINE),
    Field("window_titles", SWITCH),
    Field("methods", NAMES),
    Field("log_file", FILE),
    Field("log_file_bytes", SIZE),
    Field("notify", WAYS),
    Field("notify_kinds", ISSUE_KINDS),
    Field("notify_from_ns", LEAST),
    Field("notify_every_ns", duration(least_ns=1 * _S)),
    Field("notify_per_minute", COUNT),
    Field("webhook_file", FILE),
)

BY_KEY = {field.key: field for field in FIELDS}
