from __future__ import annotations

from pathlib import Path


def test_the_c_core_loads_where_it_was_built(wheel: Path, environment):
    environment.pip("install", "--quiet", "--no-index", "--no-deps", str(wheel))
    done = environment.run("-c", "import loopcanary._native as native; print(native.__name__)")
    assert (done.stdout, done.stderr) == ("loopcanary._native\n", "")


def test_it_needs_nothing_has_a_command_and_leaves_nothing(any_wheel: Path, environment):
    before = environment.files()
    environment.pip("install", "--quiet", "--no-index", "--no-deps", str(any_wheel))
    done = environment.run("-c", "import loopcanary; print(loopcanary.__file__)")  # writes __pycache__
    assert done.stderr == ""
    assert Path(done.stdout.strip()) == environment.site_packages / "loopcanary" / "__init__.py"
    assert (environment.folder / "bin" / "loopcanary").is_file()
    environment.pip("uninstall", "--quiet", "--yes", "loopcanary")
    assert environment.files() - before == set()
