"""`pytest --loopcanary`, in test runs of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.program.watching import PROGRAMS

pytestmark = pytest.mark.native

SAMPLED = f"""
import sys; sys.path.append({str(PROGRAMS)!r}); from blocking import until_sampled
"""
CASES = (
    f"""{SAMPLED}"""
    """
import asyncio, time, unittest
import pytest
def stall(least):
    async def main():
        for seconds in until_sampled(least):
            time.sleep(seconds)
    asyncio.run(main())

def test_quick():
    asyncio.run(asyncio.sleep(0))

def test_slow():
    stall(0.3)

def test_fails_by_itself():
    stall(0.3)
    assert 1 == 2

@pytest.mark.loopcanary(max_stall="50ms")
def test_marked():
    stall(0.3)

@pytest.mark.loopcanary(max_stall="10s")
def test_patient():
    stall(0.3)

@pytest.mark.loopcanary(allow=["time.*"])
def test_allowed():
    stall(0.3)

@pytest.mark.loopcanary(max_stall="10s")
def test_asks(loopcanary):
    assert [one for one in loopcanary.stalls if one.cause.value != "host"] == []
    loopcanary.assert_no_stall()
    stall(0.3)
    assert "time.sleep(seconds)" in [one.blocker.call for one in loopcanary.stalls if one.blocker]
    loopcanary.assert_no_stall("10s")
    with pytest.raises(AssertionError, match="sleeping"):
        loopcanary.assert_no_stall("50ms")

@pytest.fixture
def slow_to_end():
    yield
    stall(0.3)

@pytest.fixture
def slow_to_begin():
    stall(0.3)

def test_slow_end(slow_to_end):
    pass

def test_slow_begin(slow_to_begin):
    pass

class TestCase(unittest.IsolatedAsyncioTestCase):
    async def test_unittest(self):
        for seconds in until_sampled(0.3):
            time.sleep(seconds)

def test_thread():
    import threading
    thread = threading.Thread(target=stall, args=(0.3,))
    thread.start()
    thread.join()
"""
)
STALLS = (
    f"""{SAMPLED}"""
    """
import asyncio, time
async def main():
    for seconds in until_sampled(0.2):
        time.sleep(seconds)
def test_one():
    asyncio.run(main())
def test_two():
    asyncio.run(main())
"""
)


def started(folder: Path, *arguments: str, text: str = CASES) -> subprocess.Popen[str]:
    (folder / "test_cases.py").write_text(text)
    (folder / "pytest.ini").touch()
    environ = {
        name: value for name, value in os.environ.items() if not name.startswith(("LOOPCANARY", "PYTEST"))
    }
    return subprocess.Popen(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rA", *arguments],
        cwd=folder,
        env={**environ, "COLUMNS": "200"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(folder: Path, *arguments: str, text: str = CASES) -> subprocess.CompletedProcess[str]:
    with started(folder, *arguments, text=text) as process:
        output, errors = process.communicate()
    return subprocess.CompletedProcess(process.args, process.returncode, output, errors)


def outcomes(result: subprocess.CompletedProcess[str]) -> dict[str, str]:
    """Of each test, by the end of its name, the worst word."""
    found: dict[str, str] = {}
    for line in result.stdout.splitlines():
        word, _, rest = line.partition(" ")
        if word in ("PASSED", "FAILED", "ERROR") and "::" in rest:
            name = rest.split(" - ")[0].rpartition("::")[2]
            found[name] = word if found.get(name, "PASSED") == "PASSED" else found[name]
    return found


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[str]:
    return run(tmp_path_factory.mktemp("limited"), "--loopcanary-fail=200ms")


def test_tests_fail_where_they_stall_for_too_long(limited: subprocess.CompletedProcess[str]) -> None:
    assert outcomes(limited) == {
        "test_quick": "PASSED",
        "test_slow": "FAILED",
        "test_fails_by_itself": "FAILED",
        "test_marked": "FAILED",
        "test_patient": "PASSED",
        "test_allowed": "PASSED",
        "test_asks": "PASSED",
        "test_slow_end": "ERROR",
        "test_slow_begin": "ERROR",
        "test_unittest": "FAILED",
        "test_thread": "FAILED",
    }


def test_a_failure_names_line_call_cause_and_advice(limited: subprocess.CompletedProcess[str]) -> None:
    _, _, failures = limited.stdout.partition("= FAILURES =")
    _, _, slow = failures.partition(" test_slow _")
    own, _, _ = slow.partition("\n____")
    assert "sleeping" in own.splitlines()[1]
    assert "test_cases.py:9 in stall.<locals>.main" in own
    assert "time.sleep(seconds)" in own
    assert "await asyncio.sleep(...)" in own
    assert "Traceback" not in own
    by_itself = failures.partition(" test_fails_by_itself _")[2].partition("\n____")[0]
    assert "assert 1 == 2" in by_itself
    assert "sleeping" not in by_itself


def test_the_end_counts_bugs_and_names_tests(limited: subprocess.CompletedProcess[str]) -> None:
    _, _, end = limited.stdout.partition("= stalls of event loops =")
    assert counted(r" in (\d+) stalls, the longest ", end) >= 9  # a busy machine may add some
    assert "sleep: time.sleep(seconds) in main (test_cases.py:9)" in end
    assert counted(r"and (\d+) more tests", end) >= 6


def counted(pattern: str, text: str) -> int:
    found = re.search(pattern, text)
    assert found is not None, text
    return int(found[1])


def test_unless_asked_for_nothing_is_loaded(tmp_path: Path) -> None:
    text = """
import sys
def test_modules():
    found = [name for name in sys.modules if name.startswith("loopcanary")]
    assert found == ["loopcanary", "loopcanary.pytesting", "loopcanary.pytesting.plugin"]
def test_fixture(loopcanary):
    pass
"""
    result = run(tmp_path, text=text)
    assert "1 passed, 1 skipped" in result.stdout
    assert "stalls of event loops" not in result.stdout


def test_known_bugs_fail_no_test_and_gone_ones_are_said(tmp_path: Path) -> None:
    assert run(tmp_path, "--loopcanary-write-baseline=known.json", text=STALLS).returncode == 0
    known = json.loads((tmp_path / "known.json").read_text())
    assert "time.sleep(seconds) in main (test_cases.py:7)" in [bug["title"] for bug in known["groups"]]
    known["groups"].append({"fingerprint": "1:gone", "title": "requests.get(url)"})
    (tmp_path / "known.json").write_text(json.dumps(known))
    options = ("--loopcanary-fail=100ms", "--loopcanary-baseline=known.json")
    result = run(tmp_path, *options, text=STALLS)
    assert result.returncode == 0
    assert "(known)" in result.stdout
    assert "gone: requests.get(url) (1:gone)" in result.stdout
    assert run(tmp_path, *options, text=STALLS.replace("main(", "other(")).returncode == 1


def test_workers_of_xdist_send_what_they_saw(tmp_path: Path) -> None:
    store = tmp_path / "stalls"
    result = run(
        tmp_path, "-n", "2", "--dist", "each", "--loopcanary", f"--loopcanary-store={store}", text=STALLS
    )
    assert result.returncode == 0
    assert counted(r" in (\d+) stalls, the longest ", result.stdout) >= 4
    assert list(store.iterdir())


def test_what_is_wrong_is_said_in_a_line(tmp_path: Path) -> None:
    marked = "import pytest\n@pytest.mark.loopcanary(max_stal='1s')\ndef test_one(): pass\n"
    for arguments, words in (
        (["--loopcanary-baseline=gone.json"], "gone.json cannot be read"),
        (
            ["--loopcanary"],
            "test_cases.py::test_one: the marker loopcanary takes max_stall and allow, not max_stal",
        ),
    ):
        result = run(tmp_path, *arguments, text=marked)
        assert result.returncode == 4
        assert words in result.stderr
        assert "Traceback" not in result.stderr


FORKS = """
def pytest_addoption(parser):
    parser.addoption("--forked", action="store_true", dest="forked", default=False)

def pytest_configure(config):
    config.addinivalue_line("markers", "forked: in a child process")
"""


def test_a_plugin_that_forks_is_no_silence(tmp_path: Path) -> None:
    """In place of pytest-forked, which may not be there: its options and marker."""
    (tmp_path / "pytest_forked.py").write_text(FORKS)
    marked = "import pytest\n@pytest.mark.forked\ndef test_one(): pass\n"
    result = run(tmp_path, "-p", "pytest_forked", "--loopcanary", "--forked", text=marked)
    assert result.returncode == 4
    assert "--forked runs each test in a child process, where loopcanary sees no stall" in result.stderr
    result = run(tmp_path, "-p", "pytest_forked", "--loopcanary", text=marked)
    assert result.returncode == 0
    assert "1 test marked `forked`: loopcanary sees no stall in a child process" in result.stdout
    assert "forked" not in run(tmp_path, "-p", "pytest_forked", text=marked).stdout
