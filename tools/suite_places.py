"""Suites as suites.toml has them, and the environments that they run in."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import IO

from extras import CONSTRAINTS
from interpreters import outside_make
from suite_outcomes import ABSENT, Outcomes, read, without

_RECORDER = Path(__file__).with_name("suite_recorder.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """A table of suites.toml, which says what its values mean."""

    name: str
    tests: list[str]
    pythons: list[str]
    module: str = ""
    package: str = ""
    needs: list[str] = field(default_factory=list)
    from_sdist: list[str] = field(default_factory=list)
    options: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    limit_s: float = 3_600

    def programs(self) -> list[list[str]]:
        """Module and arguments of each process of a whole run."""
        if not self.module:
            return [[test, *self.options] for test in self.tests]
        skipped = [f"--deselect={prefix}" for prefix in self.left_out] if self.module == "pytest" else []
        return [[self.module, *self.options, *skipped, *self.tests]]

    def program_for(self, test: str) -> list[str]:
        """Module and arguments of a process that runs this test alone."""
        if not self.module:
            module = next(one for one in self.tests if test.startswith(f"{one}."))
            return [module, *self.options, test.removeprefix(f"{module}.")]
        if self.module == "test":
            file = next(one for one in self.tests if f".{one}." in test)
            return [self.module, *self.options, "-m", test, file]
        return [self.module, *self.options, test]


@dataclass(slots=True, kw_only=True)
class Side:
    """What one side's processes used until now, user and system, and how those of its last run ended."""

    watched: bool
    cpu_s: float = 0.0
    statuses: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Place:
    """Where a suite runs: its environment, its tests, and what its last runs left."""

    suite: Suite
    folder: Path

    @cached_property
    def python(self) -> str:
        return str(self.folder / "venv" / "bin" / "python")

    @cached_property
    def python_version(self) -> str:
        return self._ask("import platform; print(platform.python_version())")

    @cached_property
    def version(self) -> str:
        """The package's; empty for CPython's own suites."""
        if not self.suite.package:
            return ""
        return self._ask(f"from importlib.metadata import version; print(version({self.suite.package!r}))")

    def prepare(self, interpreter: str, wheel: Path) -> None:
        """Makes the environment, or brings it up to date. CalledProcessError where that fails."""
        self._tests.mkdir(parents=True, exist_ok=True)
        if not Path(self.python).exists():
            _run(interpreter, "-m", "venv", str(self.folder / "venv"))
        wanted = [*filter(None, [self.suite.package]), *self.suite.needs, str(wheel)]
        self._pip("install", f"--constraint={CONSTRAINTS}", *wanted)
        self._pip("install", "--force-reinstall", "--no-deps", str(wheel))
        if self.suite.from_sdist:
            self._take_from_sdist()

    def whole(self, side: Side) -> Outcomes:
        """One run of the suite."""
        return without(self._outcomes(side, self.suite.programs(), "whole"), self.suite.left_out)

    def alone(self, side: Side, test: str) -> str:
        """The outcome of one test, alone."""
        return self._outcomes(side, [self.suite.program_for(test)], "alone").get(test, ABSENT)

    def what_was_watched(self) -> tuple[int, int]:
        """The processes and the turns of their loops that the last whole run's store has."""
        report = [self.python, "-m", "loopcanary", "report", "--limit=0", "--format=json"]
        sessions = json.loads(_output(*report, f"--store={self._store('whole')}"))["sessions"]
        return len(sessions), sum(loop["turns"] for session in sessions for loop in session["loops"])

    @property
    def _tests(self) -> Path:
        """Where they run."""
        return self.folder / "tests"

    def _store(self, what: str) -> Path:
        return self.folder / f"store-{what}"

    def _ask(self, code: str) -> str:
        return _output(self.python, "-c", code)

    def _pip(self, *words: str) -> None:
        _run(self.python, "-m", "pip", *words, "--quiet", "--disable-pip-version-check")

    def _take_from_sdist(self) -> None:
        """Without the package, which would hide the one that is installed."""
        sdist = self.folder / f"{self.suite.package}-{self.version}.tar.gz"
        if not sdist.exists():
            exact = f"{self.suite.package}=={self.version}"
            self._pip(
                "download", "--no-deps", f"--no-binary={self.suite.package}", f"--dest={self.folder}", exact
            )
        shutil.rmtree(self._tests)
        with tarfile.open(sdist) as archive:
            top = sdist.name.removesuffix(".tar.gz")
            wanted = tuple(f"{top}/{part}" for part in self.suite.from_sdist)
            some = [member for member in archive.getmembers() if member.name.startswith(wanted)]
            archive.extractall(self.folder, members=some, filter="data")
        (self.folder / top).rename(self._tests)

    def _outcomes(self, side: Side, programs: Sequence[Sequence[str]], what: str) -> Outcomes:
        stem = f"{what}-{'watched' if side.watched else 'plain'}"
        results = self.folder / f"{stem}.jsonl"
        results.unlink(missing_ok=True)
        start = [self.python]
        if side.watched:
            shutil.rmtree(self._store(what), ignore_errors=True)
            start += ["-m", "loopcanary", "run", "--quiet", f"--store={self._store(what)}"]
        side.statuses = []
        with (self.folder / f"{stem}.log").open("w") as log:
            for program in programs:
                self._play(side, [*start, str(_RECORDER), str(results), *program], log)
        return read(results.read_text(encoding="utf-8").splitlines()) if results.exists() else {}

    def _play(self, side: Side, command: Sequence[str], log: IO[str]) -> None:
        program = subprocess.Popen(
            command,
            cwd=self._tests,
            env=_environment(Path(self.python).parent),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        limit = threading.Timer(self.suite.limit_s, os.killpg, (program.pid, signal.SIGKILL))
        limit.start()
        _, status, used = os.wait4(program.pid, 0)
        limit.cancel()
        program.returncode = os.waitstatus_to_exitcode(status)  # so that Popen does not wait for it
        side.statuses.append(program.returncode)
        side.cpu_s += used.ru_utime + used.ru_stime


def _run(*command: str) -> None:
    subprocess.run(command, env=_environment(), check=True, stdout=sys.stderr)


def _output(*command: str) -> str:
    done = subprocess.run(command, env=_environment(), check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.strip()


def _environment(*first_on_path: Path) -> dict[str, str]:
    """This process's, without what changes how Python or loopcanary behave."""
    kept = {
        name: value
        for name, value in outside_make().items()
        if not name.startswith(("PYTHON", "LOOPCANARY", "PYENV_"))
    }
    return kept | {"PATH": os.pathsep.join([*map(str, first_on_path), kept["PATH"]])}
