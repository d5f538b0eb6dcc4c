from __future__ import annotations

from pathlib import Path


def test_the_agent_imports_with_nothing_else_installed(any_wheel: Path, environment):
    environment.pip("install", "--quiet", "--no-index", "--no-deps", str(any_wheel))
    done = environment.run("-c", "import loopcanary; print(loopcanary.__file__)")
    assert done.stderr == ""
    assert Path(done.stdout.strip()) == environment.site_packages / "loopcanary" / "__init__.py"


def test_the_c_core_loads_where_it_was_built(wheel: Path, environment):
    environment.pip("install", "--quiet", "--no-index", "--no-deps", str(wheel))
    done = environment.run("-c", "import loopcanary._native as native; print(native.__name__)")
    assert (done.stdout, done.stderr) == ("loopcanary._native\n", "")


def test_there_is_a_command(any_wheel: Path, environment):
    environment.pip("install", "--quiet", "--no-index", "--no-deps", str(any_wheel))
    assert (environment.folder / "bin" / "loopcanary").is_file()


def test_uninstalling_leaves_nothing(any_wheel: Path, environment):
    before = environment.files()
    environment.pip("install", "--quiet", "--no-index", "--no-deps", str(any_wheel))
    environment.run("-c", "import loopcanary")  # writes __pycache__
    environment.pip("uninstall", "--quiet", "--yes", "loopcanary")
    assert environment.files() - before == set()
