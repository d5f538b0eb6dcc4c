"""Finds the settings file: loopcanary.toml, or pyproject.toml with a [tool.loopcanary] table.

The nearest folder upwards wins; in one folder loopcanary.toml wins. A pyproject.toml without the table is
passed by, as a package inside a bigger tree often has one.
"""

from __future__ import annotations

import os

from loopcanary.config.errors import ConfigError

TYPE_CHECKING = False  # typing is not loaded for it
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

OWN_FILE = "loopcanary.toml"
SHARED_FILE = "pyproject.toml"


class SettingsFile:
    """The settings of one file. `prefix`: the path to a key from the file's root."""

    def __init__(self, path: str, prefix: str, settings: Mapping[str, object]) -> None:
        self.path = path
        self.prefix = prefix
        self.settings = settings

    def place(self, key: str) -> str:
        """Where in the file a key is, for people."""
        return f"{self.path}: {self.prefix}{key}"


def find_settings_file(folder: str) -> SettingsFile | None:
    """The settings file in force in `folder`. Raises ConfigError where it is no valid TOML."""
    folder, above = os.path.abspath(folder), ""
    while folder != above:
        found = _read_own(os.path.join(folder, OWN_FILE)) or _read_shared(os.path.join(folder, SHARED_FILE))
        if found is not None:
            return found
        folder, above = os.path.dirname(folder), folder
    return None


def _read_own(path: str) -> SettingsFile | None:
    content = _content(path)
    return None if content is None else SettingsFile(path, "", _parsed(path, content))


def _read_shared(path: str) -> SettingsFile | None:
    content = _content(path)
    # Most pyproject.toml files do not speak of us; they cost one read, not the import of a parser.
    if content is None or b"loopcanary" not in content:
        return None
    tool = _parsed(path, content).get("tool")
    table = tool.get("loopcanary") if isinstance(tool, dict) else None
    if table is None:
        return None
    if not isinstance(table, dict):
        raise _unusable(path, "tool.loopcanary", table, "is no table", "write [tool.loopcanary]")
    return SettingsFile(path, "tool.loopcanary.", table)


def _content(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        # Absent, a folder, or not ours to read: folders above the program's may belong to others.
        return None


def _parsed(path: str, content: bytes) -> dict[str, Any]:
    import tomllib  # only where there is a file to parse

    try:
        return tomllib.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        # ValueError: no TOML, or no UTF-8.
        raise _unusable(path, "", "", f"is no valid TOML ({error})", "correct the file") from None


def _unusable(path: str, key: str, value: object, problem: str, next_step: str) -> ConfigError:
    place = f"{path}: {key}" if key else str(path)
    return ConfigError(key=key, value=value, place=place, problem=problem, next_step=next_step)
