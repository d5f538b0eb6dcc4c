"""`python -m zoo.launch WATCHER PROGRAM`: starts a watcher that is started from code, then the program."""

from __future__ import annotations

import runpy
import sys

from zoo import stage, watchers


def main() -> None:
    """Hands the watcher's `around` to the stage, and runs the program as the main module."""
    name, program = sys.argv[1:]
    stage.around = watchers.find(name).around  # type: ignore[attr-defined]
    sys.argv = [program]
    runpy.run_path(program, run_name="__main__")


if __name__ == "__main__":
    main()
