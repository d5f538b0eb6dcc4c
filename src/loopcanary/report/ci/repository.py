"""Where a file of the program lies in the repository that a CI job has checked out.

The program may have run elsewhere: in a container, installed, in a part of a larger repository. A file that
is not below the root is looked for by the end of its path.
"""

from __future__ import annotations

import os
import subprocess
from collections import defaultdict
from functools import cache, cached_property
from pathlib import Path, PurePosixPath

_ROOTS = ("GITHUB_WORKSPACE", "CI_PROJECT_DIR")
"""Variables in which GitHub and GitLab name it."""
_GIT_S = 30


class Repository:
    """Files below one folder, by name."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.place = cache(self._place)

    @classmethod
    def around(cls, folder: Path) -> Repository:
        """The one that a folder is in; the folder itself where none is found."""
        for variable in _ROOTS:
            named = os.environ.get(variable)
            if named and folder.is_relative_to(named):
                return cls(Path(named))
        above = (one for one in (folder, *folder.parents) if (one / ".git").exists())
        return cls(next(above, folder))

    def line(self, path: str, number: int) -> str | None:
        """A line, from 1, of a file by its path below the root; None where it cannot be read."""
        lines = self._lines(path)
        return lines[number - 1] if 0 < number <= len(lines) else None

    def _place(self, file: str) -> str | None:
        """The file's path below the root, with `/`; None where no one file there can be it."""
        whole = Path(os.path.normpath(self.root / file))
        if whole.is_relative_to(self.root) and whole.is_file():
            return whole.relative_to(self.root).as_posix()
        parts = PurePosixPath(file.replace("\\", "/")).parts
        alike = (
            [(_common_end(parts, other), other) for other in self._by_name.get(parts[-1], ())]
            if parts
            else []
        )
        longest = max((length for length, _ in alike), default=0)
        best = [other for length, other in alike if length == longest]
        return "/".join(best[0]) if len(best) == 1 else None

    @cached_property
    def _by_name(self) -> dict[str, list[tuple[str, ...]]]:
        """Paths of the files that git knows, by their last part; empty where there is no git."""
        found = defaultdict(list)
        for path in _tracked(self.root):
            parts = tuple(path.split("/"))
            found[parts[-1]].append(parts)
        return found

    @cache  # noqa: B019 - one repository a command
    def _lines(self, path: str) -> list[str]:
        try:
            return (self.root / path).read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return []


def _tracked(root: Path) -> list[str]:
    git = ["git", "-C", str(root), "ls-files", "-z", "--", "*.py"]
    try:
        answer = subprocess.run(git, capture_output=True, timeout=_GIT_S, check=True)  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return []
    return os.fsdecode(answer.stdout).split("\0")[:-1]


def _common_end(one: tuple[str, ...], other: tuple[str, ...]) -> int:
    """How many last parts two paths have in common."""
    pairs = zip(reversed(one), reversed(other), strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))
