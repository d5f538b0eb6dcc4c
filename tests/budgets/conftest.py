"""Builds the test-only counter of allocations with the running interpreter's headers, once a session."""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

HERE = Path(__file__).parent
FLAGS = ["-std=c11", "-O2", "-Wall", "-Wextra", "-fPIC", "-shared"]


@pytest.fixture(scope="session")
def allocation_probe_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    headers = Path(sysconfig.get_path("include"))
    if shutil.which("cc") is None or not (headers / "Python.h").exists():
        pytest.skip("needs a C compiler and Python.h")
    name = f"allocation_probe{sysconfig.get_config_var('EXT_SUFFIX')}"
    target = tmp_path_factory.mktemp("allocations") / name
    includes = sorted({sysconfig.get_path("include"), sysconfig.get_path("platinclude")})
    source = HERE / "allocation_probe.c"
    subprocess.run(
        ["cc", *FLAGS, *(f"-I{path}" for path in includes), str(source), "-o", str(target)], check=True
    )
    return target
