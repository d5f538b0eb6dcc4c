"""Where a keeper is found, by the watched program too."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from loopcanary import keeper as place

TREE = Path(__file__).resolve().parents[2]


def test_the_version_is_that_of_the_package():
    [version] = re.findall(r'^version = "(.+)"$', (TREE / "pyproject.toml").read_text(), re.MULTILINE)
    assert version == place.VERSION


CHANGES = {
    "another loopcanary": (place, "VERSION", "9.9"),
    "another environment": (sys, "prefix", "/elsewhere"),
    "another boot": (place, "_boot_id", lambda: "another"),
    "another container": (place, "_memory", lambda: "another"),
    "another user": (os, "geteuid", lambda: 4711),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_keeper_of_another_kind_has_another_key(change: str, monkeypatch: pytest.MonkeyPatch):
    before = place.key()
    assert re.fullmatch("[0-9a-f]{8}", before)
    monkeypatch.setattr(*CHANGES[change])
    assert place.key() != before


@pytest.mark.parametrize(
    ("name", "words", "leaves"),
    [
        ("python3.11", "python3.11 -m app", True),
        ("uvicorn", "/usr/bin/python /usr/bin/uvicorn app:app", True),
        ("sleep", "sleep infinity", True),
        ("systemd", "/sbin/init", False),
        ("bash", "bash entrypoint.sh", False),
        ("gunicorn", "/usr/bin/python /usr/bin/gunicorn app:app", False),
        ("python3", "/usr/bin/python3 -m gunicorn app:app", False),
    ],
)
def test_where_orphans_stay_no_keeper_is_started(tmp_path: Path, name: str, words: str, leaves: bool):
    (tmp_path / "comm").write_text(f"{name}\n")
    (tmp_path / "cmdline").write_text(words.replace(" ", "\0"))
    said = place.no_reaper(str(tmp_path))
    assert (said is not None and name in said) == leaves
    assert place.no_reaper(str(tmp_path / "none")) is None


def test_containers_with_one_flight_dir_have_one_keeper(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(place, "memory", place.memory)
    usual = place.key()
    place.use(str(tmp_path))
    made = place.environment()
    assert (place.key() == usual, made[place.FLIGHT_DIR]) == (False, str(tmp_path))
    place.use(None)
    assert place.key() == usual


def test_the_folders_are_private(tmp_path: Path):
    store = tmp_path / "store"
    for _ in range(2):
        place.prepare(str(store))
    assert [folder.stat().st_mode & 0o777 for folder in (store, store / "keeper")] == [0o700, 0o700]


def test_what_changes_a_program_does_not_change_its_keeper(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    tool, plain = tmp_path / "tool", tmp_path / "plain"
    for folder in (tool, plain):
        folder.mkdir()
    (tool / "sitecustomize.py").touch()
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, (tool, plain))))
    monkeypatch.setenv("COVERAGE_PROCESS_START", "x")
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    made = place.environment()
    ours = str(Path(place.__file__).parents[2])
    assert made["PYTHONPATH"].split(os.pathsep) == [ours, str(plain)]
    assert (made["LOOPCANARY"], made["PYTHONHASHSEED"]) == ("0", "7")
    assert "COVERAGE_PROCESS_START" not in made


def test_what_a_program_ignores_its_keeper_does_not_get(package_path: Path, tmp_path: Path):
    code = f"import sys; sys.path.insert(0, {str(package_path)!r}); from loopcanary import keeper as place; "
    code += "print([(n, v) for n, v in place.environment().items() if n.startswith('PYTHON')])"
    clean = {**os.environ, "PYTHONHOME": "/nowhere", "PYTHONPATH": str(tmp_path), "LOOPCANARY": "0"}
    program = [sys.executable, "-I", "-c", code]
    out = subprocess.run(program, env=clean, capture_output=True, check=True, text=True).stdout
    assert out.strip() == str([("PYTHONPATH", str(package_path))])


def test_a_program_that_asks_for_the_place_loads_next_to_nothing(package_path: Path):
    code = "import os, sys; old = {*sys.modules}; import loopcanary.keeper; "
    code += "print(*sorted({*sys.modules} - old))"
    environment = {**os.environ, "PYTHONPATH": str(package_path), "LOOPCANARY": "0"}
    program = [sys.executable, "-c", code]
    out = subprocess.run(program, env=environment, capture_output=True, check=True, text=True).stdout
    ours = {"loopcanary", "loopcanary.keeper", "loopcanary.whose_exception"}
    assert {*out.split()} <= {"__future__", "binascii", *ours}
