"""What pyproject.toml asks for, by the name of an extra; and the exact versions in constraints.txt."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path

TREE = Path(__file__).resolve().parent.parent
CONSTRAINTS = TREE / "constraints.txt"
# Not extras, but asked for like them.
BUILD, PACKAGE = "build", "package"


def requirements(names: Sequence[str]) -> list[str]:
    """Those of these extras, in their order; `build`: to build the package, `package`: to run it."""
    settings = tomllib.loads((TREE / "pyproject.toml").read_text(encoding="utf-8"))
    known = {
        **settings["project"]["optional-dependencies"],
        BUILD: settings["build-system"]["requires"],
        PACKAGE: settings["project"]["dependencies"],
    }
    return list(dict.fromkeys(requirement for name in names for requirement in known[name]))
