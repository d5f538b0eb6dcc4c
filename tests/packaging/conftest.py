from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import venv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

# The argument came with a security release of 3.11.
SAFELY = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """A virtual environment of a test's own; pip works on it from outside."""

    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    @property
    def site_packages(self) -> Path:
        return self.folder / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"

    def run(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Runs its interpreter, in the folder of the environment, with these environment variables added."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("LOOPCANARY")}
        return subprocess.run(
            [self.python, *arguments],
            cwd=self.folder,
            env=environment | variables,
            capture_output=True,
            text=True,
            check=False,
        )

    def pip(self, *arguments: str) -> None:
        run([sys.executable, "-m", "pip", "--python", str(self.python), *arguments])

    def files(self) -> set[str]:
        return {path.relative_to(self.folder).as_posix() for path in self.folder.rglob("*")}


def run(command: list[str], **variables: str) -> str:
    """Runs a command that must succeed, and gives its standard output."""
    done = subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def build(source: Path, folder: Path, **variables: str) -> Path:
    """Builds a wheel with this environment's tools, compiling outside the source folder."""
    pip = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-cache-dir"]
    settings = [f"--config-settings=build-dir={folder / 'build'}", f"--wheel-dir={folder}"]
    run([*pip, *settings, str(source)], **variables)
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.fixture(scope="session")
def build_wheel() -> Callable[..., Path]:
    return build


@pytest.fixture(scope="package")
def wheel(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The one that make installed for these tests; by hand, one of this test run's own."""
    if built := os.environ.get("LOOPCANARY_TEST_WHEEL"):
        return Path(built)
    return build(tree, tmp_path_factory.mktemp("wheel"), LOOPCANARY_REQUIRE_NATIVE="1")


@pytest.fixture(scope="package")
def source_release(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sdist, unpacked."""
    folder = tmp_path_factory.mktemp("sdist")
    hook = "import sys; from scikit_build_core.build import build_sdist; build_sdist(sys.argv[1])"
    done = subprocess.run(
        [sys.executable, "-c", hook, folder], cwd=tree, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as release:
        release.extractall(folder, **SAFELY)
    return folder / archive.name.removesuffix(".tar.gz")


@pytest.fixture(scope="package")
def pure_wheel(source_release: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built where there is no compiler, from the sdist, as a user's pip would."""
    return build(source_release, tmp_path_factory.mktemp("pure"), CC="there-is-no-compiler")


@pytest.fixture(scope="package")
def auto_wheel(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tree / "packages/loopcanary-auto", tmp_path_factory.mktemp("auto"))


@pytest.fixture(params=["wheel", "pure_wheel"])
def any_wheel(request: pytest.FixtureRequest) -> Path:
    return request.getfixturevalue(request.param)


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    """An empty one: not even pip."""
    folder = tmp_path / "environment"
    venv.create(folder, symlinks=True, with_pip=False)
    return Environment(folder=folder)
