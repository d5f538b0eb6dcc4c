"""The files of loopcanary-auto, installed beside a stand-in for loopcanary that says when it is started."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

SAYS_STARTED = "def start():\n    print('started')\n"
TELLS_IMPORTED = ("-c", "import sys; print([name for name in sys.modules if 'loopcanary' in name])")
FILES = ("loopcanary_auto.pth", "loopcanary_auto.py")


@pytest.fixture
def prepared(environment, tree: Path):
    for name in FILES:
        shutil.copy(tree / "packages/loopcanary-auto" / name, environment.site_packages)
    package = environment.site_packages / "loopcanary"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "_startup.py").write_text(SAYS_STARTED, encoding="utf-8")
    return environment


def test_scanners_find_nothing_to_fear_in_it(tree: Path):
    text = (tree / "packages/loopcanary-auto" / FILES[0]).read_text(encoding="utf-8")
    assert not any(word in text for word in ("exec", "eval", "compile", "base64", "subprocess"))


def test_it_starts_where_the_environment_asks_for_it(prepared):
    assert prepared.run("-c", "pass", LOOPCANARY="1").stdout.startswith("started\n")


@pytest.mark.parametrize("value", ["", "0", "yes", "11"])
def test_other_values_of_the_variable_import_nothing(prepared, value: str):
    assert prepared.run(*TELLS_IMPORTED, LOOPCANARY=value).stdout == "[]\n"


def test_it_imports_nothing_by_itself(prepared):
    assert prepared.run(*TELLS_IMPORTED).stdout == "[]\n"


@pytest.mark.parametrize("isolation", ["-E", "-I", "-S"])
def test_an_isolated_interpreter_starts_nothing(prepared, isolation: str):
    imported = prepared.run(isolation, *TELLS_IMPORTED, LOOPCANARY="1").stdout
    assert imported == ("[]\n" if isolation == "-S" else "['loopcanary_auto']\n")


@pytest.mark.parametrize(
    "startup",
    [
        "raise RuntimeError('broken')",
        "raise ImportError('half removed')",
        "def start(): raise OSError",
        "def",
        "raise SystemExit(5)",
        "def start(): raise KeyboardInterrupt",
    ],
    ids=["raises at import", "is half removed", "raises at the start", "is no Python", "exits", "interrupts"],
)
@pytest.mark.parametrize("way", ["loopcanary-auto", "a watched parent"])
def test_a_broken_package_keeps_no_program_from_starting(
    prepared, package_path: Path, startup: str, way: str
):
    (prepared.site_packages / "loopcanary" / "_startup.py").write_text(startup, encoding="utf-8")
    variables = {"LOOPCANARY": "1"}
    if way == "a watched parent":
        (prepared.site_packages / FILES[0]).unlink()
        variables["PYTHONPATH"] = str(package_path / "loopcanary/_bootstrap")
    done = prepared.run("-c", "print('program')", **variables)
    assert (done.returncode, done.stdout, done.stderr) == (0, "program\n", "")


def test_a_package_that_is_gone_keeps_no_program_from_starting(prepared):
    shutil.rmtree(prepared.site_packages / "loopcanary")
    done = prepared.run("-c", "print('program')", LOOPCANARY="1")
    assert (done.returncode, done.stdout, done.stderr) == (0, "program\n", "")


DOCTOR = "from loopcanary.assembly import doctor; print(*doctor._startup_hook()[1:], sep=': ')"


@pytest.mark.parametrize(
    ("variables", "status"),
    [({}, "off"), ({"LOOPCANARY": "1"}, "problem"), ({"LOOPCANARY": "1", "PYTHONPATH": "{ours}"}, "off")],
    ids=["nothing asks for it", "the environment asks for it", "a watched parent asks for it"],
)
def test_doctor_names_the_missing_package(environment, package_path: Path, variables, status: str):
    (environment.site_packages / "packages.pth").write_text(f"{package_path}\n", encoding="utf-8")
    ours = str(package_path / "loopcanary/_bootstrap")
    variables = {name: value.format(ours=ours) for name, value in variables.items()}
    told = environment.run("-c", DOCTOR, **variables).stdout
    assert told.startswith(f"{status}: loopcanary-auto is not installed; ")


def test_doctor_finds_the_package(prepared, tree: Path, package_path: Path):
    shutil.rmtree(prepared.site_packages / "loopcanary")
    (prepared.site_packages / "packages.pth").write_text(f"{package_path}\n", encoding="utf-8")
    assert prepared.run("-c", DOCTOR).stdout == "ok: loopcanary-auto is installed\n"


def test_doctor_says_which_children_are_not_watched(environment, package_path: Path):
    (environment.site_packages / "packages.pth").write_text(f"{package_path}\n", encoding="utf-8")
    show = "from loopcanary.assembly import doctor; print(*doctor._children(doctor.config.load()))"
    assert "except a Python with -E, -I or -S" in environment.run("-c", show).stdout
    off = environment.run("-c", show, LOOPCANARY_FOLLOW_CHILDREN="off").stdout
    assert off == "children off not watched (follow_children)\n"
