"""Starts loopcanary in children of a watched program: this folder comes first on their PYTHONPATH.

The child's own sitecustomize, if there is one, runs as if this one were not there. A child may run any
Python, 2.7 too: this file has to compile for it.
"""

# ruff: noqa: I002, INP001, PTH120 - a folder on sys.path, and pathlib is not loaded yet

import os
import sys

_HERE = os.path.dirname(__file__)
# A new list: a thread that imports now, started by a .pth file, goes on through the old one.
sys.path = [entry for entry in sys.path if entry != _HERE]
if os.environ.get("LOOPCANARY") == "1" and sys.version_info >= (3, 11):
    try:
        sys.path.append(
            os.path.dirname(os.path.dirname(_HERE))
        )  # where the child has no loopcanary of its own
        try:
            import loopcanary  # noqa: F401 - from now on it finds its modules without sys.path
        finally:
            sys.path.pop()
        from loopcanary._startup import start

        start()
    except BaseException as error:  # noqa: BLE001 - the program must start whatever happens here
        # Also where a package of our name that the child finds ends the process. The price: Control-C in
        # these milliseconds is lost, once.
        if os.environ.get("LOOPCANARY_DEBUG"):
            sys.stderr.write("loopcanary: not started: " + type(error).__name__ + ": " + str(error) + "\n")

_ours = sys.modules.pop("sitecustomize")
try:
    import sitecustomize  # type: ignore[import-not-found]  # noqa: F401 - the one that this one hides
except ImportError as error:
    if getattr(error, "name", "sitecustomize") != "sitecustomize":  # Python 2 does not say which
        raise
    sys.modules["sitecustomize"] = _ours
