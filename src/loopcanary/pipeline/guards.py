"""Guards: when stalls are not to be reported, because a debugger holds the program or there are too many.

A program at a breakpoint is not stalled, and a storm of stalls must not become a storm of
diagnoses. Both are asked once a stall, on the thread that judges: a keeper's, or the drain.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable

from loopcanary.model.evidence import StallEvidence
from loopcanary.thread_frames import thread_frames
from loopcanary.whose_exception import ours

_CACHED_NS = 500_000_000
_NO_DEBUGGERS = ("coverage", "trace", "hypothesis", "loopcanary")
"""Top-level modules whose trace functions measure and never stop the program."""
_STANDARD_DEBUGGERS = ("pdb.py", "bdb.py")
_OTHER_DEBUGGERS = {
    "/pydevd.py": "pydevd",
    "/_pydevd_bundle/": "pydevd",
    "/debugpy/": "debugpy",
    "/IPython/core/debugger.py": "IPython.core.debugger",
}
"""By a part of the paths of their files."""
_MINUTE_NS = 60_000_000_000


class DebuggerGuard:
    """Says whether a debugger is attached, asking the system at most twice a second.

    `find` is the question itself; it never raises.
    """

    def __init__(self, find: Callable[[], str | None] | None = None) -> None:
        self._find = attached_debugger if find is None else find
        self._asked_ns: int | None = None
        self._reason: str | None = None

    def reason(self, now_ns: int, evidence: StallEvidence | None = None) -> str | None:
        """Why stalls are not to be reported now, None where they are.

        With `evidence`, also where the debugger has gone since: after `continue` pdb leaves no trace but
        in the samples.
        """
        if self._asked_ns is None or not 0 <= now_ns - self._asked_ns < _CACHED_NS:
            self._asked_ns, self._reason = now_ns, self._find()
        if self._reason is None and evidence is not None:
            return debugger_on_stack(evidence)
        return self._reason


def attached_debugger() -> str | None:
    """What shows that a debugger is attached to this process, None without one. Never raises.

    `PYTHONBREAKPOINT` and an imported but unused debugger are no signs. Neither are coverage and other
    trace functions that only measure.
    """
    for sign in (_monitoring_tool, _trace_function, _pydevd_client, tracing_process):
        try:
            reason = sign()
        except ours():  # other people's objects; no answer is no debugger
            reason = None
        if reason is not None:
            return reason
    return None


def debugger_on_stack(evidence: StallEvidence) -> str | None:
    """The debugger in whose code a sample of the stall was taken, None without one. In a keeper it is not
    imported: its files are known by their paths."""
    files = {frame.file for sample in evidence.samples if sample.stack for frame in sample.stack.frames}
    for file in files:
        name = _debugger_of(file)
        if name is not None:
            return f"the stall was spent in {name}"
    return None


def _debugger_of(file: str) -> str | None:
    folder, _, name = file.rpartition("/")
    if name in _STANDARD_DEBUGGERS and folder == os.path.dirname(os.__file__):
        return name.removesuffix(".py")
    return next((module for part, module in _OTHER_DEBUGGERS.items() if part in file), None)


def _monitoring_tool() -> str | None:
    monitoring = getattr(sys, "monitoring", None)  # 3.12+
    tool = monitoring.get_tool(monitoring.DEBUGGER_ID) if monitoring is not None else None
    return f"sys.monitoring has the debugger tool {tool!r}" if tool else None


def _trace_function() -> str | None:
    # sys.gettrace() is of the calling thread only; what threading hands to new threads, and what the
    # frames of the others carry, shows a debugger that was attached elsewhere.
    functions = [sys.gettrace(), threading.gettrace()]
    functions.extend(frame.f_trace for frame in thread_frames().values())
    for function in functions:
        owner = _module_of(function)
        if owner is not None and owner.partition(".")[0] not in _NO_DEBUGGERS:
            return f"a trace function of {owner} is set"
    return None


def _module_of(function: object) -> str | None:
    if function is None:
        return None
    # A C tracer is an object without a module of its own; its type has one.
    module = getattr(function, "__module__", None) or type(function).__module__
    return str(module)


def _pydevd_client() -> str | None:
    """Pydevd is the engine of debugpy, VS Code and PyCharm; imported is not yet connected."""
    pydevd = sys.modules.get("pydevd")
    debugger = pydevd.get_global_debugger() if pydevd is not None else None
    if debugger is None:
        return None
    is_attached = getattr(debugger, "is_attached", None)
    return "pydevd is attached" if is_attached is None or is_attached() else None


def tracing_process(process: str = "self") -> str | None:
    """A process that uses ptrace on this or another one (gdb, strace): proc_pid_status(5), TracerPid.
    OSError, ValueError."""
    if not sys.platform.startswith("linux"):
        return None
    with open(f"/proc/{process}/status", "rb") as status:
        for line in status:
            if line.startswith(b"TracerPid:"):
                tracer = int(line.split()[1])
                return f"process {tracer} traces this one" if tracer else None
    return None


class StormGuard:
    """Lets `per_minute` stalls through each minute, and counts the rest. Pure: time is an argument.

    A token bucket: a minute's worth at once, then one each 60 s / `per_minute`. Integers throughout, so
    that nothing is lost to rounding.
    """

    def __init__(self, per_minute: int, now_ns: int) -> None:
        self._per_minute = per_minute
        # Credit is in nanoseconds times per_minute; one stall costs a minute.
        self._credit = per_minute * _MINUTE_NS
        self._credited_ns = now_ns

    def admits(self, now_ns: int) -> bool:
        """Whether one more may pass now; counted if not."""
        elapsed_ns = max(0, now_ns - self._credited_ns)
        self._credited_ns = max(self._credited_ns, now_ns)
        full = self._per_minute * _MINUTE_NS
        self._credit = min(full, self._credit + elapsed_ns * self._per_minute)
        if self._credit >= _MINUTE_NS:
            self._credit -= _MINUTE_NS
            return True
        return False
