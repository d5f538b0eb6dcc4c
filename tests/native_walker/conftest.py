"""Builds the test-only extension with the running interpreter's headers, once a session."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sysconfig
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
FLAGS = ["-std=c11", "-D_GNU_SOURCE", "-O2", "-g", "-Wall", "-Wextra", "-Wshadow", "-fPIC", "-shared"]
# As the C core is built, where `make test-asan` tests it.
if SANITIZE := os.environ.get("LOOPCANARY_TEST_SANITIZE"):
    FLAGS += [f"-fsanitize={SANITIZE}", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"]


def sources() -> list[Path]:
    native = ROOT / "native"
    return [
        HERE / "walker_probe.c",
        native / "core" / "memory" / "memory_reader.c",
        native / "core" / "memory" / "page_cache.c",
        native / "core" / "flight" / "slot_writer.c",
        native / "core" / "host" / "kept_file.c",
        native / "core" / "patches" / "patches.c",
        native / "core" / "flight" / "set_aside.c",
        *sorted((native / "cpython").rglob("*.c")),
    ]


def build(into: Path) -> Path:
    """Compiles the extension, warnings as errors; returns the shared object's path."""
    target = into / f"walker_probe{sysconfig.get_config_var('EXT_SUFFIX')}"
    includes = {sysconfig.get_path("include"), sysconfig.get_path("platinclude")}
    subprocess.run(
        [
            "cc",
            *FLAGS,
            "-Werror",
            *(f"-I{path}" for path in sorted(includes)),
            f"-I{ROOT / 'native'}",
            *map(str, sources()),
            "-o",
            str(target),
            "-lpthread",
        ],
        check=True,
    )
    return target


@pytest.fixture(scope="package")
def probe(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    path = build(tmp_path_factory.mktemp("walker_probe"))
    spec = importlib.util.spec_from_file_location("walker_probe", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
