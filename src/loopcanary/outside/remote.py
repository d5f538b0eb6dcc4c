"""Has a script run in another process: sys.remote_exec (PEP 768), of CPython 3.14 and later.

CPython wants both sides to be of one version, 3.14 and 3.14. A command of another version lets the process's
own interpreter do it.

The script runs when the main thread next runs Python code or, since CPython looks there as it does for
signals, when the thread's wait is interrupted. An idle event loop's wait may never end. PTRACE_SEIZE and
PTRACE_INTERRUPT end an epoll_wait with EINTR (ptrace(2), signal(7)), without a signal that the program or
its parent could see; CPython then looks, and waits on. The thread stops for some microseconds. Waits that
the kernel resumes by itself (futexes, poll, sleeps) are left alone: they would not end.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from loopcanary.outside.interpreter import Interpreter
from loopcanary.outside.processes import NotReachableError, NotReadableError, OutsideError, Process, read_task

FIRST_VERSION = (3, 14)
_SEND = "import sys; sys.remote_exec(int(sys.argv[1]), sys.argv[2])"
_SEND_S = 60
_LEVEL_FINAL = 0xF


def send(process: Process, interpreter: Interpreter, script: str) -> None:
    """Leaves the script, a path as the process sees it, for the main thread to run. OutsideError."""
    if _fits(interpreter):
        _send_from_here(process, script)
    else:
        _send_from_its_own(process, interpreter, script)


def _fits(interpreter: Interpreter) -> bool:
    """Whether this interpreter may send to that one; pre-releases must be the very same."""
    own, other = sys.hexversion, interpreter.version_hex
    both_final = own >> 4 & 0xF == _LEVEL_FINAL == other >> 4 & 0xF
    return hasattr(sys, "remote_exec") and (own == other or (both_final and own >> 16 == other >> 16))


def _send_from_here(process: Process, script: str) -> None:
    try:
        sys.remote_exec(process.pid, script)  # type: ignore[attr-defined]
    except PermissionError:
        raise process.refuse() from None
    except (OSError, RuntimeError) as error:
        process.check()
        raise _refusal(process, str(error)) from error


def _send_from_its_own(process: Process, interpreter: Interpreter, script: str) -> None:
    executable = process.executable()
    name = executable.rpartition("/")[2]
    wanted = f"python{interpreter.minor[0]}.{interpreter.minor[1]}"
    facts = process.folder.stat()
    same_root = Path("/").samefile(process.folder / "root")
    if not name.startswith("python") or not same_root or not _is_there(process, executable):
        own = ".".join(map(str, sys.version_info[:3]))
        raise OutsideError(
            f"process {process.pid} runs CPython {interpreter.version} and this command {own}:"
            f" use `{wanted} -m loopcanary attach`, in the process's container if it has one"
        )
    # The interpreter's owner may have changed it: it runs with that user's rights, not with ours, and without
    # our environment and terminal.
    as_user: dict[str, Any] = {"user": facts.st_uid, "group": facts.st_gid, "extra_groups": []}
    try:
        ran = subprocess.run(  # noqa: S603 - the process's own interpreter
            [executable, "-I", "-S", "-c", _SEND, str(process.pid), script],
            env={},
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SEND_S,
            check=False,
            **(as_user if os.geteuid() == 0 and facts.st_uid != 0 else {}),
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise OutsideError(f"{executable} could not be run: {error}") from error
    if ran.returncode != 0:
        process.check()
        raise _refusal(process, ran.stderr.decode(errors="replace").strip().rpartition("\n")[2])


def _is_there(process: Process, executable: str) -> bool:
    """Whether the running program is the file at its path."""
    try:
        return Path(executable).samefile(process.folder / "exe")
    except OSError:
        return False


def _refusal(process: Process, problem: str) -> OutsideError:
    """Translates known problems into our words."""
    if "not enabled" in problem:
        return NotReachableError(
            f"process {process.pid} accepts no scripts: it was started with PYTHON_DISABLE_REMOTE_DEBUG"
            " or -X disable-remote-debug, or its Python was built without"
        )
    if "Permission" in problem or "not permitted" in problem:
        return NotReadableError(str(process.refuse()))
    return OutsideError(f"sys.remote_exec into process {process.pid} failed: {problem}")


_SCRIPT = """\
def run(folder, package, only_if_loaded):
    import os
    import sys

    def forget():
        for name in os.listdir(folder):
            os.unlink(os.path.join(folder, name))
        os.rmdir(folder)

    def answer(found):
        import json

        with open(folder + "/answer.json.new", "w", encoding="utf-8") as file:
            json.dump(found, file)
        os.rename(folder + "/answer.json.new", folder + "/answer.json")

    def load():
        from importlib.util import find_spec, module_from_spec, spec_from_file_location

        if "loopcanary" in sys.modules or find_spec("loopcanary") is not None:
            return
        place = os.path.join(package, "__init__.py")
        if not os.path.exists(place):
            raise ImportError(
                "loopcanary is not installed in its Python, and cannot be taken from " + package
                + ", which it does not see"
            )
        spec = spec_from_file_location("loopcanary", place, submodule_search_locations=[package])
        module = module_from_spec(spec)
        sys.modules["loopcanary"] = module
        spec.loader.exec_module(module)

    try:
        try:
            os.rename(folder + "/waiting", folder + "/taken")
        except OSError:
            return forget()
        try:
            if only_if_loaded and "loopcanary" not in sys.modules:
                return answer({"was_watched": False})
            load()
            from loopcanary.assembly.attach_inside import begin

            begin(folder)
        except Exception as error:
            answer({"error": str(error) or type(error).__name__, "kind": type(error).__name__})
    except OSError:
        return


run({folder!r}, {package!r}, {only_if_loaded!r})
"""


def script(package: str, *, only_if_loaded: bool) -> str:
    """The script's text, in which `{folder!r}` is to be replaced by the folder of the request. `package` is
    the folder of this loopcanary, for processes without one. It raises nothing into the process, leaves no
    name in it, and clears away a request that was withdrawn."""
    return _SCRIPT.replace("{package!r}", repr(package)).replace("{only_if_loaded!r}", repr(only_if_loaded))


INTERRUPTIBLE = frozenset({"epoll_wait", "epoll_pwait", "epoll_pwait2"})
_SEIZE, _INTERRUPT, _DETACH = 0x4206, 0x4207, 17
_EVENT_STOP = 128
_WALL = 0x40000000
_PATIENCE_S = 30.0
"""The thread stops as soon as it gets a core, and cannot be let go before."""
_LOOK_EVERY_S = 0.001


def nudge(process: Process, call_name: str | None) -> bool:
    """Interrupts the main thread's wait, if that ends it; returns whether it did. Never raises."""
    task = read_task(process, process.pid)
    if task is None or task.state != "S" or call_name not in INTERRUPTIBLE:
        return False
    try:
        return _interrupt(process.pid)
    except (OSError, AttributeError):
        return False


def _interrupt(tid: int) -> bool:
    ptrace = ctypes.CDLL(None, use_errno=True).ptrace
    ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    ptrace.restype = ctypes.c_long
    if ptrace(_SEIZE, tid, None, None) != 0:
        return False  # not allowed, or a debugger has it
    handed_on = 0
    try:
        if ptrace(_INTERRUPT, tid, None, None) != 0:
            return False
        handed_on = _stopped_by(tid)
    finally:
        # This fails if it does not stop in time; then the end of this command lets it go.
        ptrace(_DETACH, tid, None, handed_on)
    return True


def _stopped_by(tid: int) -> int:
    """Waits for the thread to stop; returns the signal that stopped it instead, which it must get, or 0."""
    until = time.monotonic() + _PATIENCE_S
    while time.monotonic() < until:
        stopped, status = os.waitpid(tid, os.WNOHANG | _WALL)
        if stopped == tid:
            is_ours = status >> 16 == _EVENT_STOP and os.WSTOPSIG(status) in (signal.SIGTRAP, signal.SIGSTOP)
            return 0 if is_ours or not os.WIFSTOPPED(status) else os.WSTOPSIG(status)
        time.sleep(_LOOK_EVERY_S)
    return 0
