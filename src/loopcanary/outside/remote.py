"""Has a script run in another process: sys.remote_exec (PEP 768), of CPython 3.14 and later.

CPython wants both sides to be of one version, 3.14 and 3.14. Where this command runs on another one, the
process's own interpreter is asked to do it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from loopcanary.outside.errors import NotReachableError, NotReadableError, OutsideError
from loopcanary.outside.interpreter import Interpreter
from loopcanary.outside.processes import Process

FIRST_VERSION = (3, 14)
_SEND = "import sys; sys.remote_exec(int(sys.argv[1]), sys.argv[2])"
_SEND_S = 60
_LEVEL_FINAL = 0xF


def send(process: Process, interpreter: Interpreter, script: str) -> None:
    """Leaves the script, a path as the process sees it, for its main thread to run. Raises OutsideError."""
    if _fits(interpreter):
        _send_from_here(process, script)
    else:
        _send_from_its_own(process, interpreter, script)


def _fits(interpreter: Interpreter) -> bool:
    """Whether this interpreter may send to that one; of pre-releases only the very same."""
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
        raise OutsideError(
            f"process {process.pid} runs CPython {interpreter.version} and this command {_own_version()}:"
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
    """Whether the program that runs is the one that lies there now."""
    try:
        return Path(executable).samefile(process.folder / "exe")
    except OSError:
        return False


def _own_version() -> str:
    return ".".join(map(str, sys.version_info[:3]))


def _refusal(process: Process, problem: str) -> OutsideError:
    """In our words, where we know them."""
    if "not enabled" in problem:
        return NotReachableError(
            f"process {process.pid} does not let scripts in: it was started with PYTHON_DISABLE_REMOTE_DEBUG"
            " or -X disable-remote-debug, or its Python was built without"
        )
    if "Permission" in problem or "not permitted" in problem:
        return NotReadableError(str(process.refuse()))
    return OutsideError(f"sys.remote_exec into process {process.pid} failed: {problem}")
