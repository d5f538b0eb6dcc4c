"""loopcanary.pth, installed beside a stand-in for the package that says when it is started."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

SAYS_STARTED = "def start():\n    print('started')\n"
TELLS_IMPORTED = ("-c", "import sys; print('loopcanary' in sys.modules)")


@pytest.fixture
def prepared(environment, tree: Path):
    shutil.copy(tree / "src" / "loopcanary.pth", environment.site_packages)
    package = environment.site_packages / "loopcanary"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "_startup.py").write_text(SAYS_STARTED, encoding="utf-8")
    return environment


def test_it_is_one_line(tree: Path):
    assert len((tree / "src" / "loopcanary.pth").read_text(encoding="utf-8").splitlines()) == 1


def test_it_starts_where_the_environment_asks_for_it(prepared):
    assert prepared.run("-c", "pass", LOOPCANARY="1").stdout.startswith("started\n")


@pytest.mark.parametrize("value", ["", "0", "yes", "11"])
def test_other_values_of_the_variable_import_nothing(prepared, value: str):
    assert prepared.run(*TELLS_IMPORTED, LOOPCANARY=value).stdout == "False\n"


def test_it_imports_nothing_by_itself(prepared):
    assert prepared.run(*TELLS_IMPORTED).stdout == "False\n"


@pytest.mark.parametrize("isolation", ["-E", "-I", "-S"])
def test_an_isolated_interpreter_starts_nothing(prepared, isolation: str):
    assert prepared.run(isolation, *TELLS_IMPORTED, LOOPCANARY="1").stdout == "False\n"


@pytest.mark.parametrize(
    "startup",
    [
        "raise RuntimeError('broken')",
        "raise ImportError('half removed')",
        "def start(): raise OSError",
        "def",
    ],
    ids=["raises at import", "is half removed", "raises at the start", "is no Python"],
)
def test_a_broken_package_keeps_no_program_from_starting(prepared, startup: str):
    (prepared.site_packages / "loopcanary" / "_startup.py").write_text(startup, encoding="utf-8")
    done = prepared.run("-c", "print('program')", LOOPCANARY="1")
    assert (done.returncode, done.stdout, done.stderr) == (0, "program\n", "")


def test_a_package_that_is_gone_keeps_no_program_from_starting(prepared):
    shutil.rmtree(prepared.site_packages / "loopcanary")
    done = prepared.run("-c", "print('program')", LOOPCANARY="1")
    assert (done.returncode, done.stdout, done.stderr) == (0, "program\n", "")
