"""Children of watched programs, in environments where loopcanary-auto is not installed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

pytestmark = pytest.mark.native

CHILD = """
import json, os, sys
try:
    import asyncio
except ImportError:
    asyncio = None

def tell():
    if hasattr(asyncio, "run"):
        asyncio.run(asyncio.sleep(0))
    ours = sys.modules.get("loopcanary")
    told = {"watched": bool(ours and ours.statistics()), "file": getattr(ours, "__file__", None)}
    told["custom"] = getattr(sys.modules.get("sitecustomize"), "__file__", None)
    told["path"] = [each for each in sys.path if "_bootstrap" in each]
    sys.stdout.write(json.dumps(told) + "\\n")
    sys.stdout.flush()

if __name__ == "__main__":
    tell()
"""
PARENT = """
import json, multiprocessing, os, subprocess, sys, time
import child

def main(way, kind, *command):
    if way == "install":
        import loopcanary
        loopcanary.install()
    elif way == "attach":
        print("ready", flush=True)
        while not os.path.exists("attached"):
            time.sleep(0.01)
    if kind == "fork":
        pid = os.fork()
        if pid == 0:
            child.tell()
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
    elif kind == "subprocess":
        more = {name: value.replace("$PYTHONPATH", os.environ["PYTHONPATH"])
                for name, value in json.loads(os.environ.get("CHILDS", "{}")).items()}
        subprocess.run([*(command or (sys.executable,)), "child.py"], env={**os.environ, **more}, check=True)
    else:
        worker = multiprocessing.get_context(kind).Process(target=child.tell)
        worker.start()
        worker.join()

if __name__ == "__main__":
    main(*sys.argv[1:])
"""


class Program:
    """A program in a folder of its own, run by the Python of an environment; its child says what it sees."""

    def __init__(self, python: Path, folder: Path) -> None:
        self.python = python
        self.folder = folder
        (folder / "child.py").write_text(CHILD, encoding="utf-8")
        (folder / "parent.py").write_text(PARENT, encoding="utf-8")

    def child_of(self, way: str, kind: str, *command: str | Path, **childs: str) -> dict[str, object]:
        """What the child says. `way`: how its parent is watched; `childs`: what the parent changes in the
        child's environment."""
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("LOOPCANARY", "PYTHON"))
        }
        ours = {"LOOPCANARY_KEEPER": "0", "LOOPCANARY_DEBUG": "1", "CHILDS": json.dumps(childs)}
        ours["PYTHONWARNINGS"] = (
            "ignore::DeprecationWarning"  # of forks: some CPythons count threads that rest
        )
        run = ["-m", "loopcanary", "run", "--quiet"] if way == "run" else []
        program = subprocess.Popen(
            [self.python, *run, "parent.py", way, kind, *command],
            cwd=self.folder,
            env=kept | ours,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        with program:
            if way == "attach":
                assert program.stdout is not None
                assert program.stdout.readline() == "ready\n"
                attach = [sys.executable, "-m", "loopcanary", "attach", str(program.pid)]
                subprocess.run(attach, cwd=self.folder, env=kept, capture_output=True, check=True)
                (self.folder / "attached").touch()
            out, err = program.communicate(timeout=280)
        assert (program.returncode, err) == (0, "")
        return json.loads(out)


@pytest.fixture
def installed(environment, package_path: Path) -> Path:
    """The folder of an environment's packages, where all that is installed for these tests can be imported;
    the .pth files of those are not read."""
    line = f"{package_path}\n"
    (environment.site_packages / "packages.pth").write_text(line, encoding="utf-8")
    return environment.site_packages


@pytest.fixture
def program(installed: Path, environment, tmp_path: Path) -> Program:
    return Program(environment.python, tmp_path)


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """The Python of another environment, in which nothing is installed."""
    venv.create(tmp_path / "other", symlinks=True, with_pip=False)
    return tmp_path / "other/bin/python"


@pytest.mark.parametrize("kind", ["fork", "spawn", "forkserver", "subprocess"])
@pytest.mark.parametrize("way", ["run", "install", "attach"])
def test_a_child_is_watched(program, way: str, kind: str):
    if way == "attach" and sys.version_info < (3, 14):
        pytest.skip("CPython before 3.14 cannot be attached to")
    told = program.child_of(way, kind)
    assert (told["watched"], told["path"]) == (True, [])


def test_a_child_of_a_bare_environment_uses_its_parents(program, bare: Path, package_path: Path):
    told = program.child_of("install", "subprocess", bare)
    assert (told["watched"], told["file"]) == (True, str(package_path / "loopcanary/__init__.py"))


def test_a_child_of_another_environment_uses_its_own(program, bare: Path, package_path: Path):
    (theirs,) = (bare.parents[1] / "lib").glob("python*/site-packages")
    shutil.copytree(package_path / "loopcanary", theirs / "loopcanary")
    told = program.child_of("install", "subprocess", bare)
    assert (told["watched"], told["file"]) == (True, str(theirs / "loopcanary/__init__.py"))


def other_pythons() -> dict[tuple[int, int], Path]:
    """Pythons of other versions that are on this machine, by their version."""
    folders = [Path("/usr/bin"), Path("/usr/local/bin"), *Path.home().glob(".pyenv/versions/*/bin")]
    named = {
        tuple(map(int, each.name.removeprefix("python").split("."))): each
        for folder in folders
        for each in folder.glob("python[23].*")
        if each.name.removeprefix("python").replace(".", "").isdigit()
    }
    return {version: named[version] for version in sorted(named) if version != sys.version_info[:2]}


def test_a_child_of_another_python_version(program):
    """From 3.11 on the portable engine watches it: the C core is for one version. Others only start."""
    others = other_pythons()
    if not others:
        pytest.skip("no other Python here")
    seen = {version: program.child_of("install", "subprocess", each) for version, each in others.items()}
    assert {version: told["watched"] for version, told in seen.items()} == {
        version: version >= (3, 11) for version in others
    }


def test_a_childs_own_sitecustomize_runs_too(program, tmp_path: Path):
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "sitecustomize.py").write_text("import sys; sys.modules['mine'] = 1", encoding="utf-8")
    told = program.child_of("install", "subprocess", PYTHONPATH=f"$PYTHONPATH{os.pathsep}{theirs}")
    assert (told["watched"], told["custom"]) == (True, str(theirs / "sitecustomize.py"))


def test_a_child_with_a_path_of_its_own_instead_is_not_watched(program, tmp_path: Path):
    told = program.child_of("install", "subprocess", PYTHONPATH=str(tmp_path))
    assert told["watched"] is False


def test_with_loopcanary_auto_it_is(program, installed: Path, tree: Path, tmp_path: Path):
    for file in (tree / "packages/loopcanary-auto").glob("loopcanary_auto.*"):
        shutil.copy(file, installed)
    told = program.child_of("install", "subprocess", PYTHONPATH=str(tmp_path))
    assert told["watched"] is True


@pytest.mark.parametrize("flag", ["-I", "-E", "-S"])
def test_an_isolated_child_is_not_watched(program, flag: str, environment):
    assert program.child_of("install", "subprocess", environment.python, flag)["watched"] is False


def test_children_of_an_editable_install_are_watched(
    environment, source_release: Path, package_path: Path, monkeypatch
):
    """Without the C core, whose build takes minutes: what matters is where Python finds the package."""
    backend = environment.site_packages / "backend.pth"
    backend.write_text(f"{package_path}\n", encoding="utf-8")  # as pip builds it in the environment
    words = ["install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--editable"]
    monkeypatch.setenv("CC", "there-is-no-compiler")
    environment.pip(*words, str(source_release))
    told = Program(environment.python, environment.folder).child_of("install", "subprocess")
    assert (told["watched"], told["file"]) == (True, str(source_release / "src/loopcanary/__init__.py"))
