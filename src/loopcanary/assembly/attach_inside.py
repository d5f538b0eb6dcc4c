"""What `loopcanary attach` has run in the process that is to be watched. Never raises into it.

The main thread, which brings the script, is the one that must not block: modules are loaded, and the engine
is stopped, on a thread of their own. Only the start, with everything loaded, is on the main thread: loops
that run there can then be covered at once.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any

_LOADED = (
    "loopcanary.assembly.engine",
    "loopcanary.assembly.agent",
    "loopcanary.config",
    "loopcanary.engine.native",
    "loopcanary.integrations.telling",
    "loopcanary.probes",
    "loopcanary.store.recovery.flight_files",
    "loopcanary.store.store",
)


def begin(folder: str) -> None:
    """Does what the request in the folder says; the answer is left there, at once or when it is done."""
    with open(os.path.join(folder, "request.json"), encoding="utf-8") as file:  # noqa: PTH118, PTH123
        request = json.load(file)
    step, settings = request["step"], request.get("settings", {})
    if step == "load":
        _aside(folder, _load)
    elif step == "stop":
        _aside(folder, _stop)
    else:
        _answering(folder, lambda: _install(settings))


def _aside(folder: str, work: Callable[[], dict[str, Any]]) -> None:
    from loopcanary.unpatched import unpatched

    unpatched("_thread", "start_new_thread")(_answering, (folder, work))


def _answering(folder: str, work: Callable[[], dict[str, Any]]) -> None:
    try:
        found = work()
    except Exception as error:  # noqa: BLE001 - `attach` prints it; the program prints nothing
        found = {"error": str(error) or type(error).__name__, "kind": type(error).__name__}
    try:
        path = os.path.join(folder, "answer.json")  # noqa: PTH118 - pathlib need not be loaded here
        with open(path + ".new", "w", encoding="utf-8") as file:  # noqa: PTH123
            json.dump(found, file)
        os.rename(path + ".new", path)  # noqa: PTH104
    except OSError:
        return  # who asked is gone


def _load() -> dict[str, Any]:
    """Loads what a start needs, so that it does not take long."""
    from contextlib import suppress
    from importlib import import_module

    for name in _LOADED:
        import_module(name)

    from loopcanary import config
    from loopcanary.diagnosis.code.ownership import captured
    from loopcanary.diagnosis.judgement import prepare
    from loopcanary.registry import LOOPS, REGISTRY, load

    for _, kind in REGISTRY.loaded(LOOPS):
        if kind.probe is not None and any(name in sys.modules for name in kind.awaits):
            load(kind.probe)
    prepare()
    captured()  # loads sysconfig's data now
    with suppress(config.ConfigError):  # reported at the start
        config.load()  # loads what reads settings
    return {"native": _native_problem()}


def _native_problem() -> str | None:
    """Why the extension does not load in this interpreter; None where it does."""
    try:
        from loopcanary import _native  # noqa: F401
    except ImportError as error:
        return str(error)
    return None


def _install(settings: dict[str, Any]) -> dict[str, Any]:
    import loopcanary

    before = loopcanary._canary  # noqa: SLF001 - the same package
    was_running = before is not None and before.is_running
    canary = loopcanary.install(**settings)
    if canary is None:
        return {"refused": "LOOPCANARY=0 in its environment forbids loopcanary to watch it"}
    session = canary.session
    return {
        "already": was_running,
        "running": canary.is_running,
        "engine": session.engine if session is not None else "",
        "session": session.id if session is not None else "",
        "store": str(canary.config.store or ""),
    }


def _stop() -> dict[str, Any]:
    import loopcanary

    was = loopcanary._canary is not None  # noqa: SLF001 - the same package
    loopcanary.uninstall()
    return {"was_watched": was}
