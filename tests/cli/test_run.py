"""`loopcanary run` is `python`, and watches: what a program sees, and what one sees of it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import LOOPCANARY
from tests.program.watching import PROGRAMS, not_by_the_host

from loopcanary.cli.program import split

Run = Callable[..., "subprocess.CompletedProcess[str]"]

SHOW = """
import json, os, sys
print(json.dumps({"argv": sys.argv, "orig_argv": sys.orig_argv, "path0": sys.path[0],
                  "name": __name__, "flags": list(sys.flags),
                  "bootstrap": [p for p in sys.path if "_bootstrap" in p],
                  "main": __file__ if "__file__" in dir() else None}))
"""
STALL = f"""
import asyncio, sys, time; sys.path.append({str(PROGRAMS)!r}); from blocking import until_sampled
async def main():
    for seconds in until_sampled(0.6): time.sleep(seconds)
    await asyncio.sleep(0)
asyncio.run(main())
"""
SAID = re.compile(r"^\[loopcanary\] (stall|hang|not responding \(ANR\)) ([\d.]+) (ms|s)\b", re.MULTILINE)
CLEARLY = ("--threshold", "300ms")
"""Longer than what a crowded machine makes of a callback that does nothing."""


def python(place: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [os.path.normpath(sys.executable), *arguments],  # as it knows itself, and names itself in errors
        cwd=place,
        env={**os.environ, **environ},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )


# ---- our options and the program's ----------------------------------------------------------------

WITH_VALUE = {"--store", "--threshold"}
LINES = {
    "a script": (["a.py", "-x"], [], ["a.py", "-x"]),
    "options, then a script": (["--quiet", "--store", "d", "a.py"], ["--quiet", "--store", "d"], ["a.py"]),
    "a value after an equals sign": (["--store=d", "a.py"], ["--store=d"], ["a.py"]),
    "a module with options like ours": (["-m", "mod", "--quiet"], [], ["-m", "mod", "--quiet"]),
    "an attached module": (["--quiet", "-mmod"], ["--quiet"], ["-mmod"]),
    "code": (["-c", "print()", "--store"], [], ["-c", "print()", "--store"]),
    "standard input": (["--quiet", "-", "x"], ["--quiet"], ["-", "x"]),
    "two dashes": (["--quiet", "--", "a.py", "--"], ["--quiet"], ["a.py", "--"]),
    "an option's value that looks like a program": (
        ["--store", "a.py", "b.py"],
        ["--store", "a.py"],
        ["b.py"],
    ),
    "no program": (["--quiet"], ["--quiet"], []),
    "a value that is missing": (["--store"], ["--store"], []),
}


@pytest.mark.parametrize(("words", "ours", "program"), LINES.values(), ids=LINES)
def test_from_the_program_on_everything_is_the_programs(
    words: list[str], ours: list[str], program: list[str]
) -> None:
    assert split(words, WITH_VALUE) == (ours, program)


# ---- as python does it ------------------------------------------------------------------------------


@pytest.fixture
def forms(place: Path) -> dict[str, list[str]]:
    """Every form in which python takes a program."""
    (place / "app.py").write_text(SHOW)
    (place / "sub").mkdir()
    (place / "sub" / "__main__.py").write_text(SHOW)
    (place / "package").mkdir()
    (place / "package" / "__main__.py").write_text(SHOW)
    with zipfile.ZipFile(place / "app.zip", "w") as archive:
        archive.writestr("__main__.py", SHOW)
    return {
        "script": ["app.py", "--quiet", "a b", ""],
        "script elsewhere": ["./sub/../app.py"],
        "module": ["-m", "app", "--store", "x"],
        "package": ["-m", "package", "-h"],
        "code": ["-c", SHOW, "--threshold"],
        "folder": ["sub", "x"],
        "zip": ["app.zip", "x"],
        "missing script": ["nowhere.py"],
        "missing module": ["-m", "nowhere"],
        "empty stdin": ["-"],
        "syntax error": ["-c", "1 +"],
    }


FORMS = [
    "script", "script elsewhere", "module", "package", "code", "folder", "zip", "missing script",
    "missing module", "empty stdin", "syntax error",
]  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_a_program_sees_what_it_sees_under_python(
    loopcanary: Run, place: Path, package_path: Path, forms: dict[str, list[str]], form: str
) -> None:
    under_python = python(place, *forms[form], PYTHONPATH=str(package_path))
    watched = loopcanary("run", "--quiet", *forms[form])
    assert watched.stdout == under_python.stdout
    assert watched.returncode == under_python.returncode
    assert watched.stderr == under_python.stderr


def test_flags_of_the_environment_are_passed_on(loopcanary: Run, place: Path, package_path: Path) -> None:
    flags = {"PYTHONOPTIMIZE": "1", "PYTHONDEVMODE": "1", "PYTHONWARNINGS": "error::UserWarning"}
    code = "import sys; print(sys.flags, sys.warnoptions, sys._xoptions, sys.orig_argv)"
    expected = python(place, "-c", code, PYTHONPATH=str(package_path), **flags).stdout
    assert loopcanary("run", "--quiet", "-c", code, **flags).stdout == expected


def test_interpreter_flags_are_passed_on(loopcanary: Run, place: Path, package_path: Path) -> None:
    flags = ("-O", "-X", "dev", "-W", "error::UserWarning", "-B")
    code = "import sys; print(sys.flags, sys.warnoptions, sys._xoptions)"
    expected = python(place, *flags, "-c", code, PYTHONPATH=str(package_path)).stdout
    assert loopcanary("run", "--quiet", "-c", code, flags=flags).stdout == expected


@pytest.mark.parametrize("flag", ["-E", "-I", "-S"])
def test_flags_with_which_nothing_could_be_watched_are_refused(
    place: Path, package_path: Path, flag: str
) -> None:
    path = [str(package_path), *(entry for entry in sys.path if "site-packages" in entry)]
    code = f"import sys; sys.path[:0] = {path!r}; {LOOPCANARY}"
    result = python(place, flag, "-c", code, "run", "-c", "print(1)")
    assert result.returncode == 2
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    assert flag in result.stderr


def test_switched_off_a_program_runs_unwatched(loopcanary: Run, place: Path) -> None:
    code = "import os, sys; print(os.environ['LOOPCANARY'], 'loopcanary' in sys.modules)"
    result = loopcanary("run", "--store", "here", "-c", code + STALL, LOOPCANARY="0")
    assert (result.stdout, result.stderr, result.returncode) == ("0 False\n", "", 0)
    assert list(place.iterdir()) == []


def test_a_command_of_a_package_is_found_beside_python(loopcanary: Run, place: Path) -> None:
    name = "pytest"
    assert loopcanary("run", name, "--version").stdout.startswith("pytest ")
    (place / name).write_text("print('a script of the program')")
    assert loopcanary("run", name).stdout == "a script of the program\n"


@pytest.mark.parametrize("status", [0, 3, 70])
def test_the_exit_status_is_the_programs(loopcanary: Run, status: int) -> None:
    assert loopcanary("run", "-c", f"raise SystemExit({status})").returncode == status


def test_a_signals_death_is_the_programs(loopcanary: Run) -> None:
    code = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    assert loopcanary("run", "-c", code).returncode == -signal.SIGKILL


def test_the_process_is_the_same(place: Path, package_path: Path) -> None:
    command = subprocess.Popen(
        [sys.executable, "-c", LOOPCANARY, "run", "--quiet", "-c", "import os; print(os.getpid())"],
        cwd=place,
        env={**os.environ, "PYTHONPATH": str(package_path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert int(command.communicate(timeout=280)[0]) == command.pid


# ---- settings ---------------------------------------------------------------------------------------

SETTINGS = "import json, os; print(json.dumps({k: v for k, v in os.environ.items() if 'LOOPCANARY' in k}))"


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("command", [[], ["-c", LOOPCANARY, "run"]], ids=["plain", "watched"])
def test_a_program_runs_with_closed_streams(
    place: Path, package_path: Path, command: list[str], closed: str
) -> None:
    (place / "app.py").write_text(
        "import asyncio, pathlib, sys\n"
        "asyncio.run(asyncio.sleep(0))\n"
        "closed = [stream is None for stream in (sys.stdin, sys.stdout, sys.stderr)]\n"
        "pathlib.Path('closed').write_text(str(sum(closed)))\n"
        "sys.exit(7)\n"
    )
    shell = ["sh", "-c", f'exec "$@" {closed}', "sh", sys.executable, *command, "app.py"]
    environment = {**os.environ, "PYTHONPATH": str(package_path)}
    done = subprocess.run(shell, cwd=place, env=environment, stdin=subprocess.DEVNULL, check=False)
    assert done.returncode == 7
    assert (place / "closed").read_text() == str(closed.count("-"))


def test_options_travel_in_the_environment(loopcanary: Run, place: Path) -> None:
    result = loopcanary(
        "run", "--threshold", "50ms", "--store", "s", "--name", "shop", "--concern", "a", "--concern", "b",
        "--ignore", "d", "--engine", "portable", "--notify", "bell,desktop", "--quiet", "--no-children",
        "-c", SETTINGS,
    )  # fmt: skip
    found = json.loads(result.stdout)
    assert found["LOOPCANARY"] == "1"
    assert found["LOOPCANARY_STORE"] == str(place / "s")
    assert found["LOOPCANARY_THRESHOLD"] == "50ms"
    assert (found["LOOPCANARY_NAME"], found["LOOPCANARY_ENGINE"]) == ("shop", "portable")
    assert (found["LOOPCANARY_CONCERN"], found["LOOPCANARY_METHODS"]) == ("a,b", "")
    assert (found["LOOPCANARY_IGNORE"], found["LOOPCANARY_NOTIFY"]) == ("d", "bell,desktop")


def test_a_folder_that_cannot_be_written_is_said_once(loopcanary: Run, place: Path, tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root can write everywhere")
    place.chmod(0o500)
    try:
        result = loopcanary("run", "--quiet", "-c", SETTINGS)
    finally:
        place.chmod(0o700)
    assert json.loads(result.stdout)["LOOPCANARY_STORE"] == str(tmp_path / "state" / "loopcanary")
    assert len(result.stderr.splitlines()) == 1


WITHOUT_POWERS = """
import ctypes, os, sys
for power in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH: root is held to folders' modes as others are
    ctypes.CDLL(None).prctl(24, power, 0, 0, 0)  # PR_CAPBSET_DROP
os.execv(sys.argv[1], sys.argv[1:])
"""


@pytest.fixture
def homeless(place: Path, package_path: Path, tmp_path: Path) -> Iterator[Run]:
    """Runs a command line where the current folder cannot be written, and the home not even entered."""
    home = tmp_path / "home"
    home.mkdir()
    modes = {place: 0o555, home: 0}
    for folder, mode in modes.items():
        folder.chmod(mode)
    if os.geteuid() == 0:  # a home of another user is not root's
        os.chown(place, 65534, 65534)
    environment = {**os.environ, "PYTHONPATH": str(package_path), "XDG_STATE_HOME": "", "HOME": str(home)}

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", WITHOUT_POWERS, sys.executable, "-c", LOOPCANARY, *words]
        return subprocess.run(
            command, cwd=place, env=environment, capture_output=True, text=True, check=False
        )

    yield run
    for folder in modes:
        folder.chmod(0o700)


@pytest.mark.parametrize("quiet", [["--quiet"], []])
def test_one_line_says_that_nothing_can_be_stored(homeless: Run, quiet: list[str]) -> None:
    result = homeless("run", *quiet, *CLEARLY, "-c", STALL)
    assert result.returncode == 0
    (line,) = [line for line in result.stderr.splitlines() if line.startswith("loopcanary: ")]
    assert line.startswith("loopcanary: neither ")
    assert line.endswith(" can be written: stalls are not stored; choose another --store")
    assert bool(SAID.search(result.stderr)) is not bool(quiet)


def test_commands_need_no_home_of_the_users_own(homeless: Run) -> None:
    report, doctor = homeless("report"), homeless("doctor", "--no-self-test")
    assert (report.returncode, len(report.stderr.splitlines())) == (2, 1), report.stderr
    assert (doctor.returncode, doctor.stderr) == (0, "")
    assert "choose another --store" in doctor.stdout


# ---- watching -----------------------------------------------------------------------------------------


def sampled(stalls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those of the program: it stalls until it is sampled."""
    return [stall for stall in not_by_the_host(stalls) if stall["samples"]]


def test_a_stall_is_printed_stored_and_reported(loopcanary: Run, place: Path) -> None:
    (place / "app.py").write_text(STALL)
    # A keeper that a busy machine makes late says less: its texts have tests of their own.
    result = loopcanary("run", *CLEARLY, "app.py", LOOPCANARY_KEEPER="0")
    assert result.returncode == 0
    assert result.stdout == ""
    lengths_ms = [float(one[2]) * (1 if one[3] == "ms" else 1_000) for one in SAID.finditer(result.stderr)]
    assert max(lengths_ms) >= 600
    assert "app.py:4 in main" in result.stderr
    assert re.search(r"^\[loopcanary\] \d stalls? in \d bugs?", result.stderr, re.MULTILINE)
    report = json.loads(loopcanary("report", "--format", "json").stdout)
    [stall] = sampled(report["stalls"])
    assert (stall["cause"], stall["culprit"]["line"], stall["state"]) == ("sleep", 4, "ended")
    assert report["sessions"][0]["name"] == "app.py"


def test_a_run_ends_with_a_word_on_its_stalls(loopcanary: Run, place: Path) -> None:
    (place / "app.py").write_text(STALL)
    said = loopcanary("run", *CLEARLY, "app.py", LOOPCANARY_KEEPER="1").stderr
    assert re.search(r"^\[loopcanary\] \d stalls? in \d bugs?| are still being stored: ", said, re.MULTILINE)


def test_quiet_is_silent_and_stores(loopcanary: Run, place: Path) -> None:
    (place / "app.py").write_text(STALL)
    assert loopcanary("run", "--quiet", *CLEARLY, "app.py").stderr == ""
    assert len(sampled(json.loads(loopcanary("report", "--format", "json").stdout)["stalls"])) == 1


def test_a_clean_run_says_that_it_was_watched(loopcanary: Run) -> None:
    sleeps = "import asyncio; asyncio.run(asyncio.sleep(0))"
    result = loopcanary("run", "--threshold", "1m", "-c", sleeps)
    assert result.stderr.startswith("[loopcanary] no stall over 60.0 s")


@pytest.mark.native
def test_fail_on_stall_is_status_70(loopcanary: Run, place: Path) -> None:
    (place / "app.py").write_text(STALL)
    assert loopcanary("run", "--quiet", "--fail-on-stall", "app.py").returncode == 70
    assert loopcanary("run", "--quiet", "--fail-on-stall", "-c", "pass").returncode == 0


@pytest.mark.native
def test_a_program_killed_in_a_stall_is_reported(loopcanary: Run, place: Path, package_path: Path) -> None:
    (place / "app.py").write_text(
        "import asyncio, time\n"
        "async def main():\n"
        "    await asyncio.sleep(0)\n"
        "    print('ready', flush=True)\n"
        "    time.sleep(60)\n"
        "asyncio.run(main())\n"
    )
    watched = subprocess.Popen(
        [sys.executable, "-c", LOOPCANARY, "run", "--quiet", "app.py"],
        cwd=place,
        env={**os.environ, "PYTHONPATH": str(package_path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert watched.stdout is not None
    assert watched.stdout.readline() == "ready\n"
    live: dict[str, Any] = {"stalls": []}
    while not any(stall["state"] == "ongoing" and stall["culprit"] for stall in live["stalls"]):
        assert watched.poll() is None
        live = json.loads(loopcanary("report", "--format", "json").stdout or '{"stalls": []}')
    assert live["sessions"][0]["end"] == "running"
    watched.kill()
    watched.wait()
    watched.stdout.close()
    report = json.loads(loopcanary("report", "--format", "json").stdout)
    [stall] = [stall for stall in report["stalls"] if stall["state"] == "killed"]
    assert stall["culprit"]["line"] == 5
    assert report["sessions"][0]["end"] == "killed"


# ---- the startup fallback -------------------------------------------------------------------------------


def test_the_programs_own_sitecustomize_runs(loopcanary: Run, place: Path, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "sitecustomize.py").write_text("import builtins; builtins.CUSTOM = __file__")
    code = "import sys; print(CUSTOM); print(sys.modules['sitecustomize'].__file__)"
    path = os.pathsep.join([os.environ.get("PYTHONPATH", ""), str(theirs)])
    result = loopcanary("run", "--quiet", "-c", code, PYTHONPATH=f"{tree_of()}{os.pathsep}{path}")
    assert result.stdout.splitlines() == [str(theirs / "sitecustomize.py")] * 2


def test_a_failing_sitecustomize_fails_as_under_python(loopcanary: Run, place: Path, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import does_not_exist_anywhere")
    path = f"{tree_of()}{os.pathsep}{tmp_path}"
    watched = loopcanary("run", "--quiet", "-c", "print(1)", PYTHONPATH=path)
    assert watched.stdout == python(place, "-c", "print(1)", PYTHONPATH=path).stdout == "1\n"
    assert "does_not_exist_anywhere" in watched.stderr


def test_sys_path_is_final_before_threads_of_ours_import(
    place: Path, tmp_path: Path, package_path: Path
) -> None:
    (tmp_path / "loopcanary").mkdir()
    (tmp_path / "loopcanary" / "__init__.py").touch()
    startup = "import sys\ndef start(): print([p for p in sys.path if '_bootstrap' in p])\n"
    (tmp_path / "loopcanary" / "_startup.py").write_text(startup)
    path = os.pathsep.join([str(package_path / "loopcanary" / "_bootstrap"), str(tmp_path)])
    shown = python(place, "-c", "", PYTHONPATH=path, LOOPCANARY="1").stdout
    assert shown.splitlines()[-1] == "[]"  # an installed .pth file calls it, too, and before


def test_children_are_started_as_ever(loopcanary: Run) -> None:
    code = (
        "import subprocess, sys\n"
        "child = 'import sys; print([p for p in sys.path if \"_boot\" in p])'\n"
        "print(subprocess.run([sys.executable, '-c', child], capture_output=True, text=True).stdout)\n"
    )
    assert loopcanary("run", "--quiet", "-c", code).stdout.strip() == "[]"


def tree_of() -> Path:
    spec = find_spec("loopcanary")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).resolve().parents[1]
