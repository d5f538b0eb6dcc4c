"""What this machine has for the loops: their libraries, a screen, the environment that a program needs."""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from pathlib import Path

from zoo.loops import ALL, LOOP

_SYSTEM = Path("/usr/lib/python3/dist-packages")
_SCREEN = "800x600x24"


@functools.cache
def look(loop: str) -> tuple[str, str]:
    """The version of a loop's library, and why it cannot be played here: one of both is empty.

    Asked of a program of its own: two bindings of Qt do not bear each other in one.
    """
    known = ALL[loop]
    if known.screen and shutil.which("Xvfb") is None:
        return "", "Xvfb is not installed"
    if not known.asks:
        return "", ""
    borrowed = _system_gi() if loop == "glib" else None
    path = "" if borrowed is None else f"import sys; sys.path.append({str(borrowed.parent)!r}); "
    done = subprocess.run(
        [sys.executable, "-c", path + known.asks],
        env=os.environ | known.environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    if done.returncode != 0:
        return "", (done.stderr.strip().splitlines() or [f"its import ends with {done.returncode}"])[-1]
    return done.stdout.split()[-1], ""


def lacking(needs: Sequence[str]) -> str:
    """What is not installed of these, in words; empty if all is."""
    for name in needs:
        try:
            importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            return f"{name} is not installed"
    return ""


def environment(loop: str, folder: Path) -> dict[str, str]:
    """The environment that a program needs to play on it. What has to be made for it goes into `folder`."""
    needed = {LOOP: loop} | ALL[loop].environment
    borrowed = _system_gi() if loop == "glib" else None
    if borrowed is not None:
        shelf = folder / "site-packages"  # nothing but this package of the system's
        shelf.mkdir()
        (shelf / borrowed.name).symlink_to(borrowed)
        needed["PYTHONPATH"] = str(shelf)
    return needed


def _system_gi() -> Path | None:
    """PyGObject as distributions build it for the system's Python, where that has the ABI of this one."""
    package = _SYSTEM / "gi"
    fits = (package / f"_gi.{sysconfig.get_config_var('SOABI')}.so").exists()
    return package if fits and importlib.util.find_spec("gi") is None else None


@contextlib.contextmanager
def screen() -> Iterator[None]:
    """An X server of its own, without a window manager, for the programs that begin meanwhile.

    Without effect where Xvfb is not installed. RuntimeError where it does not start.
    """
    if shutil.which("Xvfb") is None:
        yield
        return
    reading, writing = os.pipe()
    words = ["Xvfb", "-displayfd", str(writing), "-screen", "0", _SCREEN, "-nolisten", "tcp"]
    server = subprocess.Popen(words, pass_fds=[writing], stderr=subprocess.DEVNULL)
    os.close(writing)
    with os.fdopen(reading) as told:
        number = told.readline().strip()  # it chooses a free one
    before = os.environ.get("DISPLAY")
    try:
        if not number:
            raise RuntimeError("Xvfb does not start here")
        os.environ["DISPLAY"] = f":{number}"
        yield
    finally:
        os.environ.pop("DISPLAY", None)
        if before is not None:
            os.environ["DISPLAY"] = before
        server.terminate()
        server.wait()
