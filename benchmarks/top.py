"""What `loopcanary top` costs: its own CPU time while twenty watched programs run, half of them busy.

    python benchmarks/top.py [SECONDS]

Prints the share of a core that one reading a second needs, without a screen (as `--once` reads) and with it
(80x24 in a pseudo-terminal). Budget: 2 %. Other watched programs of the user are read, too: best run alone.
"""

from __future__ import annotations

import fcntl
import importlib.util
import os
import pty
import resource
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
from pathlib import Path

from harness import table

PROGRAMS = table.sized(20, 2)
BUDGET = 0.02
IDLE = "import asyncio; print('ready', flush=True); asyncio.run(asyncio.sleep(10_000))"
BUSY = """
import asyncio, time
async def tick():
    for turn in range(10_000_000):
        await asyncio.sleep(0.02)
        if turn % 250 == 249:
            time.sleep(0.15)
print("ready", flush=True)
asyncio.run(tick())
"""


def main() -> None:
    """Starts the programs and measures."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else table.sized(20.0, 1.0)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        programs = [start(BUSY if number % 2 else IDLE, folder) for number in range(PROGRAMS)]
        try:
            time.sleep(2)  # until all have started: what imports cost is not measured
            told("reading", readings(seconds))
            if importlib.util.find_spec("textual") is not None:
                told("reading and screen", screen(seconds))
        finally:
            for program in programs:
                program.kill()
                program.wait()


def start(source: str, folder: str) -> subprocess.Popen[bytes]:
    """A watched program that runs."""
    command = [sys.executable, "-m", "loopcanary", "run", "--quiet", "--store", folder, "-c", source]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    return process


def readings(seconds: float) -> float:
    """Share of a core, of this process."""
    from loopcanary.assembly.top import Survey, health_of
    from loopcanary.top.rows import RowReader

    with Survey() as survey:
        watch = RowReader(survey.read, health_of)
        rows = watch.look()
        print(f"{len({row.key[0] for row in rows if row.state.is_live})} programs run")
        watch.look()
        begin, cpu = time.monotonic(), time.process_time()
        while time.monotonic() - begin < seconds:
            watch.look()
            time.sleep(1)  # as `top` does between two readings
        return (time.process_time() - cpu) / (time.monotonic() - begin)


def screen(seconds: float) -> float:
    """Share of a core, of a child with a terminal; without its start."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color"}
    top = subprocess.Popen(
        [sys.executable, "-m", "loopcanary", "top"], stdin=its, stdout=its, stderr=its, env=environment
    )
    os.close(its)
    threading.Thread(target=swallow, args=(ours,), daemon=True).start()
    time.sleep(table.sized(5.0, 1.0))  # the first screen, with all that it imports, is not what is measured
    begin, cpu = time.monotonic(), cpu_s(top.pid)
    time.sleep(seconds)
    share = (cpu_s(top.pid) - cpu) / (time.monotonic() - begin)
    top.terminate()
    top.wait()
    return share


def swallow(descriptor: int) -> None:
    """Reads what the screen writes."""
    try:
        while os.read(descriptor, 65536):
            pass
    except OSError:
        return


def cpu_s(pid: int) -> float:
    """User and system time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def told(what: str, share: float) -> None:
    """Prints one figure."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"{what}: {share:.2%} of a core at one reading a second (budget {BUDGET:.0%}); {peak} MiB at most")


if __name__ == "__main__":
    main()
