"""Starts loopcanary where its .pth file is not installed; `loopcanary run` puts this folder on PYTHONPATH.

The program's own sitecustomize, if there is one, runs as if this one were not there.
"""

# ruff: noqa: INP001, PTH100, PTH118, PTH120 - a folder on sys.path, and pathlib is not loaded yet

from __future__ import annotations

import os
import sys


def _leave_path() -> None:
    """Takes this folder off sys.path. Before a thread of ours runs: one that imports while an entry goes
    would pass over the next entry, the standard library perhaps."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]


def _run_hidden() -> None:
    """Runs the sitecustomize that this one hides."""
    ours = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # type: ignore[import-not-found]  # noqa: F401 - the other one
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
        if ours is not None:
            sys.modules["sitecustomize"] = ours


def _start() -> None:
    """Imports loopcanary from beside this folder, which need not be on sys.path, and starts it."""
    if os.environ.get("LOOPCANARY") != "1" or sys.version_info < (3, 11):
        return
    try:
        _import_from_here()
        from loopcanary._startup import start

        start()
    except Exception as error:  # noqa: BLE001 - the program must start whatever happens here
        if os.environ.get("LOOPCANARY_DEBUG"):
            sys.stderr.write(f"loopcanary: not started: {type(error).__name__}: {error}\n")


def _import_from_here() -> None:
    from importlib.util import find_spec, module_from_spec, spec_from_file_location

    if find_spec("loopcanary") is not None:
        return
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    spec = spec_from_file_location(
        "loopcanary",
        os.path.join(package, "__init__.py"),
        submodule_search_locations=[package],
    )
    if spec is None or spec.loader is None:
        return
    module = module_from_spec(spec)
    sys.modules["loopcanary"] = module
    spec.loader.exec_module(module)


_leave_path()
_start()
_run_hidden()
