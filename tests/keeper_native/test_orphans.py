"""A reaper of orphans, as a container's first process is, has its keeper as an ordinary child."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import os, signal, sys
import loopcanary._native as native

folder, ways = sys.argv[1], sys.argv[2:]
signals = []
signal.signal(signal.SIGCHLD, lambda *_: signals.append(1))
if "subreaper" in ways:
    import ctypes
    assert ctypes.CDLL(None).prctl(36, 1, 0, 0, 0) == 0
else:
    assert os.getpid() == 1
os.mkfifo(f"{folder}/lives")
os.mkfifo(f"{folder}/may_end")
script = f"echo $$ > {folder}/lives; read word < {folder}/may_end; exit 0".encode()
native.set_keeper((b"/bin/sh", b"-c", script), (), f"{folder}/mark".encode(), f"{folder}/bell".encode(), b"")
native.start(path=f"{folder}/a.flight", facts=b"{}", threshold_ns=10**9, sample_delay_ns=10**9,
    sample_interval_ns=10**9, hang_ns=10**9, anr_ns=10**10, takes_keeper=True)
native.ring_keeper()
keeper = int(open(f"{folder}/lives").read())

def wait():
    try:
        return os.wait()
    except ChildProcessError:
        return "none"

child = os.fork()
if child == 0:
    os._exit(7)
said = [wait() == (child, 7 << 8), os.getsid(keeper) == keeper]
open(f"{folder}/may_end", "w").close()
said += [wait() == (keeper, 0), wait(), len(signals)]
native.stop(True, 60.0)
print(said)
"""


def first_process() -> list[str]:
    """Words that make what follows the first process of a PID namespace."""
    words = ["unshare", "--pid", "--fork", "--mount-proc"]
    words += [] if os.geteuid() == 0 else ["--map-root-user"]
    try:
        subprocess.run([*words, "true"], check=True, capture_output=True, timeout=60)
    except (OSError, subprocess.SubprocessError) as error:
        pytest.skip(f"no PID namespace can be made here: {error}")
    return words


@pytest.mark.parametrize("way", ["first process", "subreaper"])
def test_a_wait_for_any_child_meets_the_keeper_when_it_ends(tmp_path: Path, way: str) -> None:
    words = first_process() if way == "first process" else []
    ended = subprocess.run(
        # CPython 3.12 warns of forks beside threads. The engine has its own rest; this bare program does not.
        [*words, sys.executable, "-W", "ignore", "-c", PROGRAM, str(tmp_path), way],
        check=False,
        capture_output=True,
        text=True,
        env={"LOOPCANARY": "0", "PATH": os.environ["PATH"]},
        timeout=280,
    )
    assert (ended.stdout, ended.stderr) == ("[True, True, True, 'none', 2]\n", "")
