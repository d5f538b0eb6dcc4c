"""The process beside a test run: shows its threads when a test runs for too long.

    python -m loopcanary.pytesting.hang_helper PID NANOSECONDS

Its standard input has a line for each begin and end of a test, its name or an empty one, as Python writes
them; it ends with it.

PYTEST_DONT_REWRITE: it is no part of a test run.
"""

from __future__ import annotations

import ast
import os
import select
import subprocess
import sys


def main(pid: int, after_ns: int) -> None:
    """Reads until standard input ends."""
    test, left = "", b""
    while True:
        ready, _, _ = select.select([0], [], [], after_ns / 1e9 if test else None)
        if not ready:
            _show(pid, test, after_ns)
            test = ""  # once a test
            continue
        read = os.read(0, 65_536)
        if not read:
            return
        *lines, left = (left + read).split(b"\n")
        for line in lines:
            test = ast.literal_eval(line.decode())


def _show(pid: int, test: str, after_ns: int) -> None:
    sys.stderr.write(f"\n[loopcanary] {test!a} has run for {after_ns / 1e9:g} s and goes on; its threads:\n")
    sys.stderr.flush()
    command = [sys.executable, "-P", "-m", "loopcanary", "dump", str(pid)]
    subprocess.run(command, stdin=subprocess.DEVNULL, stdout=2, check=False)  # noqa: S603 - ours


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
