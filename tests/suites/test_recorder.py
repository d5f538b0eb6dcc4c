"""What tools/suite_recorder.py writes of programs that run tests; and suites.toml."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from suite_outcomes import read
from suite_places import Suite

TOOLS = Path(__file__).resolve().parents[2] / "tools"
SUITES = tomllib.loads((TOOLS / "suites.toml").read_text(encoding="utf-8"))
CASES = """
import os, sys, unittest

class Cases(unittest.TestCase):
    def test_good(self):
        assert __name__ != "__main__" or sys.argv[0].endswith("cases.py"), sys.argv
    def test_bad(self):
        self.fail()
    def test_skipped(self):
        self.skipTest("for a reason")
    def test_parts(self):
        for part in range(3):
            with self.subTest(part=part):
                self.assertNotEqual(part, 1)
    @unittest.expectedFailure
    def test_expected(self):
        self.fail()

class Ending(unittest.TestCase):
    def test_ends_the_process(self):
        os._exit(7)

if __name__ == "__main__":
    unittest.main()
"""
OUTCOMES = {
    "test_bad": "failed",
    "test_expected": "passed",
    "test_good": "passed",
    "test_parts": "failed",
    "test_skipped": "skipped",
}


def recorded(folder, *words):
    (folder / "cases.py").write_text(CASES)
    command = [sys.executable, TOOLS / "suite_recorder.py", folder / "results", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    return done.returncode, read((folder / "results").read_text().splitlines())


def test_a_module_of_unittest_that_ends_in_the_middle(tmp_path):
    status, outcomes = recorded(tmp_path, "cases")
    assert status == 7
    by_name = {f"cases.Cases.{name}": outcome for name, outcome in OUTCOMES.items()}
    assert outcomes == {**by_name, "cases.Ending.test_ends_the_process": "no end"}


def test_pytest_has_its_own_ids(tmp_path):
    status, outcomes = recorded(tmp_path, "pytest", "-p", "no:cacheprovider", "cases.py::Cases")
    assert status == 1
    assert outcomes.pop("cases.py::Cases::test_expected") in {"passed", "skipped"}
    expected = {f"cases.py::Cases::{name}": OUTCOMES[name] for name in OUTCOMES if name != "test_expected"}
    assert outcomes == expected


@pytest.mark.parametrize("name", SUITES)
def test_a_suite_has_programs_and_a_locked_version(name, tree):
    suite = Suite(name=name, **SUITES[name])
    locked = (tree / "constraints.txt").read_text(encoding="utf-8")
    assert suite.programs()
    assert f"\n{suite.package}==" in locked or not suite.package
    assert all(suite.left_out.values())


def test_a_test_alone_is_asked_for_in_the_words_of_its_runner():
    def words(module, tests, test):
        suite = Suite(name="one", pythons=["3.12"], module=module, tests=tests, options=["-o"])
        return suite.program_for(test)

    regrtest = words("test", ["test_gc", "test_asyncio"], "test.test_asyncio.test_locks.A.test_b")
    assert regrtest == ["test", "-o", "-m", "test.test_asyncio.test_locks.A.test_b", "test_asyncio"]
    assert words("pytest", ["tests"], "tests/a.py::b[1]") == ["pytest", "-o", "tests/a.py::b[1]"]
    assert words("", ["a.test_1", "a.test_2"], "a.test_2.C.d") == ["a.test_2", "-o", "C.d"]
