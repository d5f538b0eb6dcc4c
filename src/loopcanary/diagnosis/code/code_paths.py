"""Where the code of a process lies: captured there, so that a dead process can be judged elsewhere.

Paths are made absolute by os.path: pathlib can only do so by following links, and a code object may hold
either form.
"""

from __future__ import annotations

import os
import site
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path

_PTH_BYTES_MAX = 1 << 16
_PTH_FILES_MAX = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class CodePaths:
    """Folders of one process by what they hold. Absolute, without a trailing separator."""

    stdlib: tuple[str, ...] = ()
    site: tuple[str, ...] = ()
    """Installed packages: site-packages, dist-packages, the scripts folder of the environment."""
    editable: tuple[str, ...] = ()
    """Folders that a `.pth` file in `site` names: installed in place, so the program's own."""
    ours: tuple[str, ...] = ()
    """The package of loopcanary itself."""
    roots: tuple[str, ...] = ()
    """Entries of sys.path: what a module's name is relative to."""
    working: str = ""
    """The working folder; relative file names are relative to it."""
    main: str = ""
    """File of `__main__`: a path, or `<string>` and `<stdin>` for a program given in that way."""

    @classmethod
    def capture(cls) -> CodePaths:
        """The paths of this process. Reads the `.pth` files of its environment; raises nothing for
        one that cannot be read."""
        places = sysconfig.get_paths()
        installed = [places[key] for key in ("purelib", "platlib", "scripts") if key in places]
        installed += _site_folders()
        return cls(
            stdlib=_folders([places.get("stdlib", ""), places.get("platstdlib", ""), *_frozen_archives()]),
            site=_folders(installed),
            editable=_folders(_editable_folders(_folders(installed))),
            ours=_folders([str(Path(__file__).parents[2])]),
            roots=_folders(entry or os.curdir for entry in sys.path),
            working=_working_folder(),
            main=_main_file(),
        )

    def to_json(self) -> dict[str, object]:
        """A dict of strings and lists of strings, for `from_json`."""
        return {
            name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()
        }

    @classmethod
    def from_json(cls, data: Mapping[str, object]) -> CodePaths:
        """The value that `to_json` was made from; unknown keys and values of a wrong type are left out,
        since the dict may come from another version's file."""
        known: dict[str, object] = {}
        for field in fields(cls):
            value = data.get(field.name)
            if field.name in ("working", "main"):
                known[field.name] = value if isinstance(value, str) else ""
            elif isinstance(value, (list, tuple)):
                known[field.name] = tuple(entry for entry in value if isinstance(entry, str) and entry)
        return cls(**known)  # type: ignore[arg-type]


def _folders(entries: Iterable[str]) -> tuple[str, ...]:
    """Absolute, as written and with links resolved, each once."""
    seen: dict[str, None] = {}
    for entry in entries:
        if entry:
            seen.setdefault(os.path.abspath(entry).rstrip(os.sep) or os.sep)
            seen.setdefault(os.path.realpath(entry).rstrip(os.sep) or os.sep)
    return tuple(seen)


def _site_folders() -> list[str]:
    folders: list[str] = []
    try:
        folders += site.getsitepackages()
        folders.append(site.getusersitepackages())
    except (AttributeError, OSError, TypeError):
        # An old virtualenv ships a `site` without these; sysconfig has named the main folders already.
        pass
    # Debian's python adds dist-packages folders that only sys.path knows.
    folders += [entry for entry in sys.path if Path(entry).name in ("site-packages", "dist-packages")]
    return folders


def _frozen_archives() -> list[str]:
    """The zipped standard library (`python311.zip`), where there is one on the path."""
    name = f"python{sys.version_info[0]}{sys.version_info[1]}.zip"
    return [entry for entry in sys.path if Path(entry).name == name]


def _editable_folders(installed: tuple[str, ...]) -> list[str]:
    found: list[str] = []
    for folder in installed:
        try:
            files = sorted(Path(folder).glob("*.pth"))[:_PTH_FILES_MAX]
        except OSError:
            continue
        for file in files:
            found += _pth_entries(file)
    # Packages also name folders of their own in this way (pywin32): these stay installed.
    return [entry for entry in found if not any(entry.startswith(folder) for folder in installed)]


def _pth_entries(path: Path) -> list[str]:
    try:
        with path.open("rb") as file:
            text = file.read(_PTH_BYTES_MAX).decode("utf-8", "replace")
    except OSError:
        return []
    # site.addpackage: `import` lines are code, `#` lines are comments, all others are folders.
    lines = [line.strip() for line in text.splitlines()]
    entries = [line for line in lines if line and not line.startswith(("#", "import ", "import\t"))]
    folders = [path.parent / entry for entry in entries]
    return [os.path.abspath(folder) for folder in folders if _is_folder(folder)]


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def _working_folder() -> str:
    try:
        return str(Path.cwd())
    except OSError:
        return ""  # it was removed under the process


def _main_file() -> str:
    argument = sys.argv[0] if getattr(sys, "argv", None) else ""
    if argument == "-c":
        return "<string>"
    if argument in ("", "-"):
        return "<stdin>"
    file = getattr(sys.modules.get("__main__"), "__file__", None)
    return os.path.abspath(file) if isinstance(file, str) else ""


@cache
def captured() -> CodePaths:
    """The paths of this process, as of the first call."""
    return CodePaths.capture()
