"""Finds the settings file: loopcanary.toml, or pyproject.toml with a [tool.loopcanary] table; and the error
of settings.

The nearest folder upwards wins; in one folder loopcanary.toml wins. A pyproject.toml without the table is
passed by, as a package inside a bigger tree often has one.
"""

from __future__ import annotations

import os

from loopcanary.facts import is_mine, is_ours
from loopcanary.whose_exception import ours_of
from loopcanary.whose_folder import open_file

TYPE_CHECKING = False  # typing is not loaded for it
if TYPE_CHECKING:
    from collections.abc import Collection


class ConfigError(ValueError):
    """A setting that cannot be used. Its text is one line: place, what is wrong, next step.

    The place is `keyword threshold`, `environment variable LOOPCANARY_THRESHOLD` or
    `/x/pyproject.toml: tool.loopcanary.threshold`; the next step says what to write instead.
    """

    def __init__(self, *, key: str, value: object, place: str, problem: str, next_step: str) -> None:
        super().__init__(" ".join(f"{place}: {problem}; {next_step}".split()))
        self.key = key
        self.value = value
        self.place = place
        self.problem = problem
        self.next_step = next_step


def unknown(key: str, value: object, place: str, known: Collection[str]) -> ConfigError:
    import difflib

    near = difflib.get_close_matches(key.replace("-", "_").lower(), known, n=1, cutoff=0.5)
    next_step = f"did you mean {near[0]}?" if near else "docs/reference/settings.md lists all settings"
    return ConfigError(key=key, value=value, place=place, problem="no such setting", next_step=next_step)


# typing is not loaded for it
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

_BYTES_MAX = 1 << 20
_THEIR_BYTES_MAX, _THEIR_DOTS_MAX = 1 << 16, 256
"""Limits of another user's file: tomllib takes half a minute for 64 KiB of dots in one line."""
OWN_FILE = "loopcanary.toml"
SHARED_FILE = "pyproject.toml"
TRUST = "LOOPCANARY_TRUST"
"""A variable with a folder. Settings files of other users in and below this folder are trusted, too."""


class SettingsFile:
    """The settings of one file. `prefix` is the path to a key from the file's root. The file is trusted
    (`is_believed`) if it is root's or this user's, or if LOOPCANARY_TRUST names a folder above it. An
    untrusted file with a problem has no settings."""

    def __init__(
        self,
        path: str,
        prefix: str,
        settings: Mapping[str, object],
        *,
        is_believed: bool,
        problem: ConfigError | None = None,
    ) -> None:
        self.path = path
        self.prefix = prefix
        self.settings = settings
        self.is_believed = is_believed
        self.problem = problem

    def place(self, key: str) -> str:
        return f"{self.path}: {self.prefix}{key}"

    def not_taken(self, keys: Iterable[str]) -> str:
        """A line for people about the keys of a file that is not believed."""
        folder = os.path.dirname(self.path)
        why = "ignored, as another user can change this file"
        takes = f"set {TRUST}={folder} in the environment, or `run --config {self.path}`"
        return f"{self.place(', '.join(keys))}: {why}; to use all, {takes}"


def find_settings_file(folder: str, trusted: str | None = None) -> SettingsFile | None:
    """The settings file in force in `folder`; `trusted` is the value of TRUST. Raises ConfigError if the file
    is trusted and not valid TOML."""
    folder, above = os.path.abspath(folder), ""
    while folder != above:
        for name in (OWN_FILE, SHARED_FILE):
            found = _read(os.path.join(folder, name), trusted, is_shared=name == SHARED_FILE)
            if found is not None:
                return found
        folder, above = os.path.dirname(folder), folder
    return None


def read_settings_file(path: str) -> SettingsFile:
    """The settings of a named file. Raises ConfigError if it has no settings."""
    real = os.path.realpath(path)
    found = _read(real, os.path.dirname(real), is_shared=os.path.basename(path) == SHARED_FILE)
    if found is None:
        raise _unusable(path, "", path, "is not a file with settings", "name a loopcanary.toml")
    return found


def _read(path: str, trusted: str | None, *, is_shared: bool) -> SettingsFile | None:
    content, is_believed = _content(path)
    # Most pyproject.toml files do not speak of us; they cost one read, not the import of a parser.
    if content is None or (is_shared and b"loopcanary" not in content):
        return None
    if trusted and path.startswith(os.path.join(os.path.abspath(trusted), "")):
        is_believed = True
    try:
        if not is_believed:
            _check_size(path, content)
        settings = _parsed(path, content)
        table = _table(path, settings) if is_shared else settings
    except ConfigError as error:
        if is_believed:
            raise
        return SettingsFile(path, "", {}, is_believed=False, problem=error)
    prefix = "tool.loopcanary." if is_shared else ""
    return None if table is None else SettingsFile(path, prefix, table, is_believed=is_believed)


def _content(path: str) -> tuple[bytes | None, bool]:
    """The file's content, and whether only root and this user can have written it. A link of theirs counts
    as a file."""
    try:
        is_safe = is_ours(path)
        follow = is_safe and is_mine(os.lstat(path))
        with os.fdopen(open_file(path, follow=follow), "rb") as file:
            content = file.read(_BYTES_MAX + 1)
            is_believed = is_safe and is_mine(os.fstat(file.fileno()))
    except ours_of(OSError):
        # Absent, a folder, a pipe, or not ours to read: folders above the program's may belong to others.
        return None, False
    return (content if len(content) <= _BYTES_MAX else None), is_believed


def _check_size(path: str, content: bytes) -> None:
    dots = max(line.count(b".") for line in content.split(b"\n"))
    if len(content) > _THEIR_BYTES_MAX or dots > _THEIR_DOTS_MAX:
        raise _unusable(path, "", "", "is too large for a file that another user can change", "shorten it")


def _table(path: str, settings: dict[str, Any]) -> dict[str, Any] | None:
    tool = settings.get("tool")
    table = tool.get("loopcanary") if isinstance(tool, dict) else None
    if table is None or isinstance(table, dict):
        return table
    raise _unusable(path, "tool.loopcanary", table, "is not a table", "write [tool.loopcanary]")


def _parsed(path: str, content: bytes) -> dict[str, Any]:
    import tomllib  # only where there is a file to parse

    try:
        return tomllib.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        # ValueError: no TOML, or no UTF-8.
        raise _unusable(path, "", "", f"is not valid TOML ({error})", "correct the file") from None


def _unusable(path: str, key: str, value: object, problem: str, next_step: str) -> ConfigError:
    place = f"{path}: {key}" if key else str(path)
    return ConfigError(key=key, value=value, place=place, problem=problem, next_step=next_step)
