"""The settings in force: keyword > environment > loopcanary.toml or pyproject.toml > default.

docs/configuration.md has every setting; `FIELDS` is the table behind it.
"""

from __future__ import annotations

from loopcanary.config.errors import ConfigError
from loopcanary.config.fields import FIELDS, Field
from loopcanary.config.loading import load, settings_as_environment

__all__ = ["FIELDS", "ConfigError", "Field", "load", "settings_as_environment"]
