from __future__ import annotations

import tomllib
import zipfile
from pathlib import Path, PurePosixPath

import pytest


def names(wheel: Path) -> list[PurePosixPath]:
    with zipfile.ZipFile(wheel) as archive:
        return [PurePosixPath(name) for name in archive.namelist()]


def test_a_wheel_holds_the_package_only(any_wheel: Path):
    roots = {name.parts[0] for name in names(any_wheel)}
    assert {root for root in roots if not root.endswith(".dist-info")} == {"loopcanary"}


def test_the_start_file_has_a_wheel_of_its_own(auto_wheel: Path):
    assert auto_wheel.stem.split("-")[2:] == ["py3", "none", "any"]
    files = {str(name) for name in names(auto_wheel) if ".dist-info" not in name.parts[0]}
    assert files == {"loopcanary_auto.pth", "loopcanary_auto.py"}


def test_a_wheel_holds_no_tests_and_no_c_sources(any_wheel: Path):
    unwanted = [
        name
        for name in names(any_wheel)
        if name.suffix in {".c", ".h", ".a", ".pyc"} or any(part.startswith("test") for part in name.parts)
    ]
    assert unwanted == []


def test_a_wheel_holds_every_module_of_the_tree(any_wheel: Path, tree: Path):
    sources = {
        path.relative_to(tree / "src").as_posix()
        for path in (tree / "src/loopcanary").rglob("*")
        if path.is_file() and path.suffix not in {".pyc", ".so"}
    }
    assert sources - {str(name) for name in names(any_wheel)} == set()
    assert "loopcanary/py.typed" in sources


def test_a_wheel_carries_the_licence(any_wheel: Path):
    assert [name.name for name in names(any_wheel) if "licenses" in name.parts] == ["LICENSE"]


def test_the_native_wheel_is_for_one_python_and_platform(wheel: Path):
    python, abi, platform = wheel.stem.split("-")[2:]
    assert python == abi
    assert python.startswith("cp3")
    assert platform != "any"
    assert [
        name for name in names(wheel) if name.parent.name == "loopcanary" and name.name.startswith("_native.")
    ]


def test_the_wheel_without_is_for_every_python_and_platform(pure_wheel: Path):
    assert pure_wheel.stem.split("-")[2:] == ["py3", "none", "any"]
    assert [name for name in names(pure_wheel) if name.suffix == ".so"] == []


def test_a_source_release_can_be_built_and_tested(source_release: Path):
    for name in (
        "pyproject.toml",
        "CMakeLists.txt",
        "Makefile",
        "LICENSE",
        "README.md",
        "packages/loopcanary-auto/pyproject.toml",
    ):
        assert (source_release / name).is_file()
    for name in ("native/core", "tests", "tools", "docs"):
        assert any((source_release / name).iterdir())


def test_a_required_c_core_fails_without_a_compiler(source_release: Path, tmp_path: Path, build_wheel):
    with pytest.raises(AssertionError, match="there-is-no-compiler"):
        build_wheel(source_release, tmp_path, CC="there-is-no-compiler", LOOPCANARY_REQUIRE_NATIVE="1")


def test_extras_name_libraries_of_others_only(tree: Path):
    """A checkout installs what is its own by path: what an index has under such a name may be anybody's."""
    for settings in (tree / "pyproject.toml", *tree.glob("packages/*/pyproject.toml")):
        extras = tomllib.loads(settings.read_text("utf-8"))["project"].get("optional-dependencies", {})
        assert not [each for named in extras.values() for each in named if each.startswith("loopcanary")]


def test_the_extra_of_all_is_all_that_users_install(tree: Path):
    extras = tomllib.loads((tree / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    parts = [extras[name] for name in ("export", "notify", "top", "ui")]
    assert sorted(extras["all"]) == sorted(each for part in parts for each in part)


def test_both_distributions_have_one_version_and_licence(tree: Path):
    auto = tree / "packages/loopcanary-auto"
    both = [tomllib.loads((one / "pyproject.toml").read_text("utf-8"))["project"] for one in (tree, auto)]
    assert len({(one["version"], one["license"], one["requires-python"]) for one in both}) == 1
    assert (tree / "LICENSE").read_bytes() == (auto / "LICENSE").read_bytes()
