"""Tracing of calls switched on and off again and again in a program that calls all the time.

`make method-cycles METHOD_CYCLES=10000` does it more often.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.native
CYCLES = int(os.environ.get("LOOPCANARY_METHOD_CYCLES") or 10)
GIVES_UP_S = 7_200
SCRIPT = """
import os, sys, threading
import loopcanary

def fails(number):
    if number % 3 == 0:
        raise ValueError(number)
    return number

def steps(number):
    for step in range(number):
        yield step + fails(step + 1 if step % 3 != 2 else 1)

def work():
    done = 0
    for number in range(1, 9):
        try:
            done += fails(number) + sum(steps(number))
        except ValueError:
            done += 1
    return done

EXPECTED = work()
over = threading.Event()
wrong = []

def call_all_the_time():
    while not over.is_set():
        if work() != EXPECTED:
            wrong.append("a result")

def is_off():
    if sys.version_info < (3, 12):
        return sys.getprofile() is None
    return all(sys.monitoring.get_tool(tool) is None for tool in (2, 3, 4))

threads = [threading.Thread(target=call_all_the_time) for _ in range(3)]
for thread in threads:
    thread.start()
for cycle in range(int(sys.argv[1])):
    with loopcanary.watch("all") if cycle % 2 else threading.Lock():
        loopcanary.install(methods=["."], methods_ring="32KiB", console="off")
        before = work()
        traced = loopcanary.statistics()["methods_known"]
        loopcanary.uninstall()
    if before != EXPECTED or work() != EXPECTED:
        wrong.append("a result of the main thread")
    if not traced or not is_off():
        wrong.append(f"{traced} functions, off: {is_off()}")
over.set()
for thread in threads:
    thread.join()
left = [line for line in open("/proc/self/maps") if ".calls-" in line]
print(sorted(set(wrong)), left)
"""


def test_it_can_be_switched_on_and_off_under_load(tmp_path):
    (tmp_path / "app.py").write_text(SCRIPT)
    clean = {name: value for name, value in os.environ.items() if not name.startswith("LOOPCANARY")}
    command = (sys.executable, "app.py", str(CYCLES))
    done = subprocess.run(
        command, cwd=tmp_path, env=clean, capture_output=True, text=True, timeout=GIVES_UP_S, check=False
    )
    assert (done.stdout, done.returncode) == ("[] []\n", 0), done.stderr
