"""A handler imports a package of the program's own, whose modules take their time."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from zoo.stage import measured, run, sized

EXPECT = {"cause": ["import"], "loops": "all"}
MODULES = 30
MODULE = "table = {}\nfor number in range(COUNT):\n    table[number] = str(number)\n"


def fill(count):
    exec(compile(MODULE.replace("COUNT", str(count)), "<module>", "exec"), {})


COUNT = sized(fill, 0.4, start=10_000) // MODULES


def load_plugins():
    import plugins_of_the_zoo  # noqa: F401  # <- culprit


async def handler():
    with measured():
        load_plugins()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        package = Path(folder, "plugins_of_the_zoo")
        package.mkdir()
        names = [f"plugin_{number}" for number in range(MODULES)]
        for name in names:
            (package / f"{name}.py").write_text(MODULE.replace("COUNT", str(COUNT)))
        (package / "__init__.py").write_text("".join(f"from . import {name}\n" for name in names))
        sys.path.insert(0, folder)
        run(handler)
