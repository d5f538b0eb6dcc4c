"""Where the code of a process lies: captured there, so that a dead process can be judged elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from functools import cache

from loopcanary.facts import code_paths
from loopcanary.late_dataclass import dataclass


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
        """The paths of this process."""
        return cls.from_json(code_paths())

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


@cache
def captured() -> CodePaths:
    """The paths of this process, as of the first call."""
    return CodePaths.capture()
