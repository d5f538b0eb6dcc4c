"""Prints what building the wheel needs, one requirement a line, for an environment that builds in place.

`static`: what pyproject.toml names. `dynamic`: what its backend wants on this machine besides, which is
cmake and ninja where the machine has none that will do; the static ones must be installed for it.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path


def main() -> None:
    """Prints the requirements of the kind that the command line names."""
    match sys.argv[1:]:
        case ["static"]:
            settings = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))
            requirements = settings["build-system"]["requires"]
        case ["dynamic"]:
            from scikit_build_core.build import get_requires_for_build_wheel  # installed by now

            requirements = get_requires_for_build_wheel()
        case _:
            sys.exit("usage: build-requirements.py static | dynamic (in the project's folder)")
    for requirement in requirements:
        print(requirement)


if __name__ == "__main__":
    main()
