"""Installs what extras of pyproject.toml ask for, in the versions of constraints.txt, for its Python.

`build` means what building the package takes, `package` what the package needs. With --where-possible, as for
the loops and servers that tests run real programs with, wheels only: what has none for it is named and
left out. Its tests are skipped.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence

from extras import BUILD, CONSTRAINTS, TREE, requirements

# What the backend wants on this machine besides: cmake and ninja where there are none that will do.
_ASK_THE_BACKEND = (
    "from scikit_build_core.build import get_requires_for_build_wheel as ask; print(*ask(), sep='\\n')"
)


def main() -> int:
    """0 where all that must be there is."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0] if __doc__ else None)
    parser.add_argument("extras", nargs="*", metavar="EXTRA")
    parser.add_argument("--where-possible", action="store_true", help="leave out what has no wheel here")
    options = parser.parse_args()
    wanted = requirements(options.extras)
    if options.where_possible:
        _install_what_has_wheels(wanted)
        return 0
    installed = _install(wanted)
    if installed and BUILD in options.extras:
        installed = _install(_wanted_by_backend())
    return 0 if installed else 1


def _install_what_has_wheels(wanted: Sequence[str]) -> None:
    """All at once; where that fails, one by one."""
    possible = [requirement for requirement in wanted if _is_locked(requirement)]
    absent = [requirement for requirement in wanted if requirement not in possible]
    if not _install(possible, "--only-binary=:all:"):
        absent += [one for one in possible if not _install([one], "--only-binary=:all:")]
    for requirement in absent:
        print(f"not installed, its tests are skipped: {requirement}", flush=True)


def _is_locked(requirement: str) -> bool:
    """Whether constraints.txt has a version of it for this Python, or it is not for this Python at all."""
    from packaging.requirements import Requirement  # pytest brought them
    from packaging.utils import canonicalize_name

    asked = Requirement(requirement)
    if asked.marker is not None and not asked.marker.evaluate():
        return True
    lines = CONSTRAINTS.read_text(encoding="utf-8").splitlines()
    locked = [Requirement(line) for line in lines if line and not line.startswith("#")]
    return any(
        canonicalize_name(one.name) == canonicalize_name(asked.name)
        and (one.marker is None or one.marker.evaluate())
        for one in locked
    )


def _wanted_by_backend() -> list[str]:
    asked = subprocess.run(
        [sys.executable, "-c", _ASK_THE_BACKEND], cwd=TREE, check=True, stdout=subprocess.PIPE, text=True
    )
    return [line for line in asked.stdout.splitlines() if line]


def _install(wanted: Sequence[str], *options: str) -> bool:
    """Whether pip could."""
    if not wanted:
        return True
    pip = [sys.executable, "-m", "pip", "install", "--quiet", f"--constraint={CONSTRAINTS}"]
    return subprocess.run([*pip, *options, *wanted], check=False).returncode == 0


if __name__ == "__main__":
    sys.exit(main())
