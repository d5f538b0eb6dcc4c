"""Runs the tests on every CPython that loopcanary supports, and tells how each of them went.

An interpreter is looked for on PATH and among pyenv's; one that is not here is taken from Debian sid, in a
root folder of its own that debootstrap makes (as root, on a system that has or can install debootstrap;
tools/sid_root.py). One that cannot be had is skipped, with the reason. Each gets its own virtual
environment and build folder in the tree, so that a second run is quick.

With --parallel those of this machine and those of the Debian root run at once, each side one after the
other: the tests wait more than they compute. What a version printed then comes when it is through.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shlex
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from sid_root import SidRoot, SidRootError

TREE = Path(__file__).resolve().parent.parent
VERSIONS = ("3.11", "3.12", "3.13", "3.14", "3.15")
# pytest's closing line: "=== 12 passed, 1 skipped in 3.45s ===".
_CLOSING_LINE = re.compile(r"^=+ (.*\bin \d[\d.]*s.*?) =+$")


Say = Callable[[str], None]
"""Where text goes."""


class Place(Protocol):
    """Somewhere that `make` can run with one interpreter."""

    def command(self, tree: Path, command: Sequence[str]) -> list[str]:
        """What to execute here so that `command` runs in the tree there."""


class Here:
    """This machine."""

    def command(self, tree: Path, command: Sequence[str]) -> list[str]:
        """The command itself."""
        return ["env", f"--chdir={tree}", *command]


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpreter:
    """One CPython: where, and by which name."""

    version: str
    path: str
    place: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How one version went; `passed` is None where it could not be tried."""

    version: str
    passed: bool | None
    detail: str


def main() -> int:
    """Runs the versions asked for; 0 where none failed."""
    options = _options()
    versions = [version for version in options.versions if version not in options.skip]
    if not options.parallel:
        return _summarize([_report(version, options.sid_root, _print) for version in versions])
    sides = [
        [version for version in versions if (_find_here(version) is None) is elsewhere]
        for elsewhere in (False, True)
    ]
    with ThreadPoolExecutor(len(sides)) as pool:
        done = pool.map(lambda side: [_at_its_end(version, options.sid_root) for version in side], sides)
        outcomes = [outcome for side in done for outcome in side]
    return _summarize(sorted(outcomes, key=lambda outcome: versions.index(outcome.version)))


def _report(version: str, sid_root: Path, say: Say) -> Outcome:
    say(f"\n== CPython {version}\n")
    outcome = _test(version, sid_root, say)
    say(f"== CPython {version}: {_word(outcome)}, {outcome.detail}\n")
    return outcome


def _print(text: str) -> None:
    print(text, end="", flush=True)


_printing = threading.Lock()


def _at_its_end(version: str, sid_root: Path) -> Outcome:
    said: list[str] = []
    try:
        return _report(version, sid_root, said.append)
    finally:
        with _printing:
            _print("".join(said))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--versions", nargs="+", default=VERSIONS, choices=VERSIONS, metavar="X.Y")
    parser.add_argument("--skip", nargs="+", default=(), metavar="X.Y", help="versions tested otherwise")
    parser.add_argument("--parallel", action="store_true", help="this machine's and Debian's at once")
    parser.add_argument(
        "--sid-root",
        type=Path,
        default=Path(os.environ.get("LOOPCANARY_SID_ROOT", "/var/cache/loopcanary/sid")),
        metavar="FOLDER",
        help="the Debian root, made where it is not there (default: $LOOPCANARY_SID_ROOT or %(default)s)",
    )
    return parser.parse_args()


def _test(version: str, sid_folder: Path, say: Say) -> Outcome:
    try:
        interpreter = _find_here(version) or _take_from_sid(version, SidRoot(sid_folder))
    except SidRootError as error:
        return Outcome(version=version, passed=None, detail=f"not on this machine, and {error}")
    return _run_tests(interpreter, say)


def _find_here(version: str) -> Interpreter | None:
    for candidate in _candidates(version):
        if _is_cpython(candidate, version):
            return Interpreter(version=version, path=candidate, place=Here())
    return None


def _candidates(version: str) -> Iterator[str]:
    # pyenv's own folders come first: its shims answer to a name only in some folders.
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    with contextlib.suppress(OSError):  # another user's, say
        folders = sorted((pyenv / "versions").glob(f"{version}.*"), key=_patch_level, reverse=True)
        yield from (str(folder / "bin" / "python") for folder in folders)
    yield f"python{version}"


def _patch_level(folder: Path) -> int:
    patch = folder.name.split(".")[2]
    return int(patch) if patch.isdigit() else -1  # 3.15.0b1, 3.13.1t: last


def _is_cpython(python: str, version: str) -> bool:
    """Says whether `python` runs and is this version of CPython, with a GIL."""
    question = (
        "import sys, sysconfig;"
        "print('%d.%d' % sys.version_info[:2], sys.implementation.name,"
        " bool(sysconfig.get_config_var('Py_GIL_DISABLED')))"
    )
    try:
        answer = subprocess.run(
            [python, "-c", question], capture_output=True, text=True, check=False, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return answer.stdout.split() == [version, "cpython", "False"]


def _take_from_sid(version: str, root: SidRoot) -> Interpreter:
    root.provide(version)
    return Interpreter(version=version, path=f"/usr/bin/python{version}", place=root)


def _run_tests(interpreter: Interpreter, say: Say) -> Outcome:
    venv = f".venv-{interpreter.version}"
    make = ["make", "test-python", f"PYTHON={interpreter.path}", f"VENV={venv}"]
    command = interpreter.place.command(TREE, make)
    say(f"{shlex.join(make)}\n")
    closing_line = ""
    # A make that called this script must not pass its own flags and variables on.
    environment = {
        name: value for name, value in os.environ.items() if name not in {"MAKEFLAGS", "MAKELEVEL", "MFLAGS"}
    }
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=environment,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            say(line)
            if closing := _CLOSING_LINE.match(line):
                closing_line = closing[1]
    detail = closing_line or "did not come to its tests"
    return Outcome(version=interpreter.version, passed=process.returncode == 0, detail=detail)


def _word(outcome: Outcome) -> str:
    return {True: "passed", False: "FAILED", None: "skipped"}[outcome.passed]


def _summarize(outcomes: Sequence[Outcome]) -> int:
    print()
    for outcome in outcomes:
        print(f"CPython {outcome.version}: {_word(outcome)}, {outcome.detail}")
    verdicts = [outcome.passed for outcome in outcomes]
    counts = f"{verdicts.count(True)} passed, {verdicts.count(False)} failed"
    print(f"versions: {counts}, {verdicts.count(None)} skipped")
    return 1 if False in verdicts else 0


if __name__ == "__main__":
    sys.exit(main())
