"""A control group's quota stops the process in each period."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

from zoo.stage import measured, run, skip

EXPECT = {"cause": ["host"]}
V1, V2 = Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup")


@contextlib.contextmanager
def own_group():
    root, quota, text = (V2, "cpu.max", "10000 100000")
    if (V1 / "cpu.cfs_quota_us").exists() or (V1 / "cgroup.procs").exists():
        root, quota, text = (V1, "cpu.cfs_quota_us", "10000")
    group = root / f"zoo-{os.getpid()}"
    try:
        group.mkdir()
        (group / quota).write_text(text)
    except OSError as error:
        with contextlib.suppress(OSError):
            group.rmdir()
        skip(f"no control group can be made: {error}")
    try:
        yield group
    finally:
        # This process, and the keeper that was started in it.
        for member in (group / "cgroup.procs").read_text().split():
            (root / "cgroup.procs").write_text(member)
        group.rmdir()


def add_up():
    until = time.thread_time() + 0.04
    while time.thread_time() < until:
        pass


async def handler():
    with own_group() as group, measured():
        (group / "cgroup.procs").write_text(str(os.getpid()))
        add_up()
        (group.parent / "cgroup.procs").write_text(str(os.getpid()))


if __name__ == "__main__":
    run(handler)
