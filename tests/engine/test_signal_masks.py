"""Signals are the program's: our threads take none, and no process that a plugin starts is deaf to them."""

from __future__ import annotations

import signal

import pytest

pytestmark = pytest.mark.native

_MASKS = """
    import signal, subprocess, loopcanary

    def blocked(path):
        line = next(line for line in open(path) if line.startswith("SigBlk:"))
        return {number for number in signal.valid_signals() if int(line.split()[1], 16) >> (number - 1) & 1}

    def of_a_child():
        words = [sys.executable, "-S", "-c", "print(open('/proc/self/status').read())"]
        return subprocess.run(words, env={}, stdout=open("status", "w"), check=True) and blocked("status")

    seen = threading.Event()
    masks = []

    @loopcanary.on_issue
    def start_child(issue):
        if issue.culprit and issue.culprit.file.startswith("stalls/"):
            masks.append(of_a_child())
            seen.set()
        return issue
"""


def test_a_plugins_children_block_what_the_main_thread_blocks(place):
    program = place.program(
        _MASKS
        + """
    stall("first")
    assert seen.wait(60)
    assert masks[-1] == signal.pthread_sigmask(signal.SIG_BLOCK, []), masks
    seen.clear()
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    stall("second")
    assert seen.wait(60)
    assert masks[-1] == signal.pthread_sigmask(signal.SIG_BLOCK, []) >= {signal.SIGUSR1}, masks
    """
    )
    place.run(program)
    assert place.culprits() == ["first", "second"]


def test_only_its_own_faults_reach_the_drains_thread():
    native = pytest.importorskip("loopcanary._native", reason="needs the C core")
    masks: list[set[int]] = []
    handle = native.start_thread(lambda: masks.append(signal.pthread_sigmask(signal.SIG_BLOCK, [])))
    assert native.join_thread(handle, 60.0)
    faults = {getattr(signal, f"SIG{name}") for name in ("SEGV", "BUS", "FPE", "ILL", "TRAP", "SYS", "ABRT")}
    assert masks == [signal.valid_signals() - faults - {signal.SIGKILL, signal.SIGSTOP}]
