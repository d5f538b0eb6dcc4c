from __future__ import annotations

import re
import zipfile
from pathlib import Path

import pytest


def test_the_c_core_loads_where_it_was_built(wheel: Path, environment):
    environment.pip("install", "--quiet", "--no-index", "--no-deps", str(wheel))
    done = environment.run("-c", "import loopcanary._native as native; print(native.__name__)")
    assert (done.stdout, done.stderr) == ("loopcanary._native\n", "")


def test_it_leaves_its_package_its_metadata_and_the_command(any_wheel: Path, environment):
    before = environment.files()
    environment.pip("install", "--quiet", "--no-index", "--no-deps", "--no-compile", str(any_wheel))
    packages = environment.site_packages.relative_to(environment.folder)
    metadata = "-".join(any_wheel.stem.split("-")[:2]) + ".dist-info"
    added = {Path(file) for file in environment.files() - before}
    expected = {packages / "loopcanary", packages / metadata, Path("bin/loopcanary")}
    assert expected <= added
    assert {file for file in added if not expected & {file, *file.parents}} == set()
    done = environment.run("-c", "import loopcanary; print(loopcanary.__file__)")  # writes __pycache__
    assert done.stderr == ""
    assert Path(done.stdout.strip()) == environment.site_packages / "loopcanary" / "__init__.py"
    environment.pip("uninstall", "--quiet", "--yes", "loopcanary")
    assert environment.files() - before == set()


def test_an_upgrade_removes_the_start_file_of_old_releases(pure_wheel: Path, environment, tmp_path: Path):
    """They had `loopcanary.pth` at the root of site-packages."""
    install = "install", "--quiet", "--no-index", "--no-deps"
    old = tmp_path / "loopcanary-0.0.1-py3-none-any.whl"
    with zipfile.ZipFile(pure_wheel) as new, zipfile.ZipFile(old, "w") as archive:
        for name in new.namelist():
            folder, _, file = name.partition("/")
            text = new.read(name)
            if file == "METADATA":
                text = re.sub(rb"(?m)^Version: .*$", b"Version: 0.0.1", text)
            elif file == "RECORD":
                text = re.sub(rb"(?m)^loopcanary-[^/]+", b"loopcanary-0.0.1.dist-info", text)
                text += b"loopcanary.pth,,\n"
            is_metadata = folder.endswith(".dist-info")
            archive.writestr(f"loopcanary-0.0.1.dist-info/{file}" if is_metadata else name, text)
        archive.writestr("loopcanary.pth", "import os\n")
    environment.pip(*install, str(old))
    assert (environment.site_packages / "loopcanary.pth").exists()
    environment.pip(*install, "--upgrade", str(pure_wheel))
    assert not (environment.site_packages / "loopcanary.pth").exists()


@pytest.mark.native
def test_loopcanary_auto_watches_an_unchanged_program(wheel: Path, auto_wheel: Path, environment):
    environment.pip("install", "--quiet", "--no-index", "--no-deps", str(wheel), str(auto_wheel))
    program = (
        "import asyncio, sys\nasyncio.run(asyncio.sleep(0))\n"
        "print(sys.modules['loopcanary'].statistics() != {})"
    )
    done = environment.run("-c", program, LOOPCANARY="1", LOOPCANARY_KEEPER="0")
    assert (done.stdout, done.stderr) == ("True\n", "")
    environment.pip("uninstall", "--quiet", "--yes", "loopcanary")
    done = environment.run("-c", "print('program')", LOOPCANARY="1")
    assert (done.stdout, done.stderr) == ("program\n", "")
