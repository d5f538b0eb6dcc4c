"""Finds the settings file: loopcanary.toml, or pyproject.toml with a [tool.loopcanary] table.

The nearest folder upwards wins; in one folder loopcanary.toml wins. A pyproject.toml without the table is
passed by, as a package inside a bigger tree often has one.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from loopcanary.config.errors import ConfigError

OWN_FILE = "loopcanary.toml"
SHARED_FILE = "pyproject.toml"


class SettingsFile(NamedTuple):
    """The settings of one file. `prefix`: the path to a key from the file's root."""

    path: Path
    prefix: str
    settings: Mapping[str, object]

    def place(self, key: str) -> str:
        """Where in the file a key is, for people."""
        return f"{self.path}: {self.prefix}{key}"


def find_settings_file(folder: Path) -> SettingsFile | None:
    """The settings file in force in `folder`. Raises ConfigError where it is no valid TOML."""
    for candidate in (folder, *folder.parents):
        found = _read_own(candidate / OWN_FILE) or _read_shared(candidate / SHARED_FILE)
        if found is not None:
            return found
    return None


def _read_own(path: Path) -> SettingsFile | None:
    content = _content(path)
    return None if content is None else SettingsFile(path, "", _parsed(path, content))


def _read_shared(path: Path) -> SettingsFile | None:
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


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        # Absent, a folder, or not ours to read: folders above the program's may belong to others.
        return None


def _parsed(path: Path, content: bytes) -> dict[str, Any]:
    import tomllib  # only where there is a file to parse

    try:
        return tomllib.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        # ValueError: no TOML, or no UTF-8.
        raise _unusable(path, "", "", f"is no valid TOML ({error})", "correct the file") from None


def _unusable(path: Path, key: str, value: object, problem: str, next_step: str) -> ConfigError:
    place = f"{path}: {key}" if key else str(path)
    return ConfigError(key=key, value=value, place=place, problem=problem, next_step=next_step)
