"""loopcanary sees every stall of the thread that must not block, names the line and the cause, and keeps
the evidence even if the process is killed in the middle.

    import loopcanary
    canary = loopcanary.install(threshold="100ms")

or, with no change to the program, `loopcanary run app.py`. See README.md and docs/.

Importing this package imports nothing else; `install` does.
"""

from __future__ import annotations

import os as _os
from typing import TYPE_CHECKING as _TYPE_CHECKING

if _TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from loopcanary.engine.canary import Canary
    from loopcanary.engine.scopes import expect, scene, watch
    from loopcanary.model import Issue

__all__ = ["expect", "install", "on_issue", "scene", "statistics", "uninstall", "watch"]

_canary: Canary | None = None


def install(*, _from_startup: bool = False, **settings: Any) -> Canary | None:
    """Starts to watch this process and answers its canary; the same one if it is watched already.

    `settings` are the fields of docs/configuration.md, such as `threshold="100ms"`, `store=".loopcanary"`,
    `concern=["app"]`; what is not given comes from the environment, loopcanary.toml or pyproject.toml, and
    the defaults. Raises ConfigError (a ValueError) that names a bad setting and its place. With
    LOOPCANARY=0 in the environment nothing is done and None is answered.

    Any thread. Loops that run already and loops made later are watched.
    """
    global _canary  # noqa: PLW0603 - one engine a process
    if _os.environ.get("LOOPCANARY") == "0":
        return None
    if _canary is None:
        from loopcanary.assembly import make_canary
        from loopcanary.config import load

        _canary = make_canary(load(**settings))
        # A child process starts its engine when it runs a loop; the program itself at once, so that nothing
        # of it happens in the middle.
        if not _from_startup or _os.environ.get("LOOPCANARY_RUN_PID") == str(_os.getpid()):
            _canary.start()
        _canary.arm()
    return _canary


def uninstall() -> None:
    """Stops watching: stores what is left, takes back every patch, ends the threads. Idempotent."""
    global _canary
    canary, _canary = _canary, None
    if canary is not None:
        canary.stop()


def on_issue(interceptor: Callable[[Issue], Issue | None]) -> Callable[[Issue], Issue | None]:
    """Decorator: `interceptor(issue)` sees each issue before it is stored and answers it, a changed one
    (dataclasses.replace), or None to drop it. Called on the drain thread; one that raises is switched
    off. In force from the next start of the engine, or at once where it runs."""
    from loopcanary.registry import REGISTRY

    REGISTRY.add_interceptor(interceptor)
    return interceptor


def statistics() -> dict[str, int]:
    """Own counters: samples, drops with reasons, overhead. Empty where nothing is watched."""
    return {} if _canary is None else _canary.statistics()


def __getattr__(name: str) -> Any:
    if name in {"scene", "watch", "expect"}:
        from loopcanary.engine import scopes

        return getattr(scopes, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
