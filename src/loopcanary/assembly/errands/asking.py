"""Errands: the side of who asks.

The program is asked by a file beside its flight file and a count in it (native/module/keeper/line.c), and
answers by another file.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from loopcanary import outside
from loopcanary.assembly import native_module
from loopcanary.assembly.dump import flight_file_of
from loopcanary.model.method_map import ANSWER, ERRAND, ERRAND_ENDS
from loopcanary.outside.processes import HangsError, NotReachableError, OutsideError
from loopcanary.whose_folder import open_file

_LOOK_EVERY_S = 0.01
_ANSWER_BYTES = 1 << 16


def watched(pid: int) -> tuple[outside.Process, str]:
    """The process, and the path of its flight file. OutsideError: it is not there, or not watched."""
    process = outside.Process.of(pid)
    path = flight_file_of(process)
    if path is None:
        raise NotReachableError(
            f"process {pid} is not watched by loopcanary: start it with `loopcanary run` or with"
            f" LOOPCANARY=1 in its environment, or `loopcanary attach {pid}` (CPython 3.14 or later)"
        )
    return process, path


class Errand:
    """One errand to one process. If it lasts, its end is said when the block is left."""

    def __init__(self, process: outside.Process, path: str) -> None:
        """`path`: of the flight file. OutsideError where it is not this user's."""
        self.pid = process.pid
        self._process = process
        self._path = path
        self._id = secrets.token_hex(8)
        self._is_begun = False
        try:
            self._page = native_module().open_keeper(path)
        except ImportError as error:
            raise OutsideError(
                f"this needs loopcanary's native extension, which is not available: {error}"
            ) from None
        except ValueError as error:
            raise NotReachableError(f"process {process.pid} cannot be asked: {error}") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.end()
        self._page.close()

    def end(self) -> None:
        """It is over. Idempotent."""
        with suppress(OSError):
            if self._is_begun:
                self._is_begun = False
                flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
                with os.fdopen(os.open(self._path + ERRAND_ENDS, flags, 0o600), "w") as file:
                    file.write(f"{self._id}\n")
                self._page.errand()
        with suppress(OSError):
            if self._read(ANSWER) is not None:
                Path(self._path + ANSWER).unlink()

    def is_done(self) -> None:
        """Nothing of it lasts in the process."""
        self._is_begun = False

    def ask(self, wanted: Mapping[str, Any], timeout_s: float) -> dict[str, Any]:
        """The answer of the process. HangsError: it gives none in that time."""
        self._is_begun = True
        self._put(wanted)
        answer = self._answer(timeout_s)
        if answer is None and self._withdrawn():
            self.is_done()
        elif answer is None:
            answer = self._answer(timeout_s)
        if answer is None:
            raise HangsError(
                f"process {self.pid} did not begin within {timeout_s:g} s: it runs no watched work"
                f" now, or it hangs (`loopcanary dump {self.pid}` shows what it does)"
            )
        return answer

    def _put(self, wanted: Mapping[str, Any]) -> None:
        path = self._path + ERRAND
        made = Path(f"{path}.{self._id}")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(made, flags, 0o600), "w", encoding="utf-8") as file:
            json.dump({"id": self._id, **wanted}, file)
        made.replace(path)
        self._page.errand()

    def _withdrawn(self) -> bool:
        """False: the process has taken it meanwhile, or another command's is there."""
        with suppress(OSError):
            if self._read(ERRAND) is not None:
                Path(self._path + ERRAND).unlink()
                return True
        return False

    def _read(self, suffix: str) -> dict[str, Any] | None:
        """What is in a file, if it is about this errand."""
        with suppress(OSError, ValueError, RecursionError):
            with os.fdopen(open_file(self._path + suffix), "rb") as file:
                found = json.loads(file.read(_ANSWER_BYTES))
            if isinstance(found, dict) and found.get("id") == self._id:
                return found
        return None

    def _answer(self, timeout_s: float) -> dict[str, Any] | None:
        gives_up = time.monotonic() + timeout_s
        while time.monotonic() < gives_up:
            self._process.check()
            if (answer := self._read(ANSWER)) is not None:
                return answer
            time.sleep(_LOOK_EVERY_S)
        return None
