"""How long a program takes until it says that it is ready, and which imports took most of it."""

from __future__ import annotations

import builtins
import sys
import threading
import time

from loopcanary.model import Phase, PhaseKind, Startup

LIMIT_NS = 4_000_000_000


class StartTracer:
    """From the moment when loopcanary starts; `loopcanary run` does so before the program's first line."""

    name = "starts"
    on_program_thread = True

    def init(self, desk):
        global _running
        self._desk = desk
        self._phases = []
        self._open = []  # [begin, name, time of what it imported] of each import that goes on
        _running = self

    def start(self):
        self._wall_ns, self._begin_ns = time.time_ns(), time.monotonic_ns()
        self._thread = threading.get_ident()
        self._plain = builtins.__import__
        builtins.__import__ = self._imported = self._import

    def stop(self):
        if builtins.__import__ is getattr(self, "_imported", None):
            builtins.__import__ = self._plain

    def _import(self, name, globals=None, locals=None, fromlist=(), level=0):
        module = None
        if threading.get_ident() == self._thread:
            module = new_module(name, globals, fromlist, level)
        if module is None:
            return self._plain(name, globals, locals, fromlist, level)
        begin_ns, at, depth = time.monotonic_ns(), len(self._phases), len(self._open)
        self._phases.append(None)  # its place is before those inside it
        self._open.append(0)
        try:
            return self._plain(name, globals, locals, fromlist, level)
        finally:
            took_ns = time.monotonic_ns() - begin_ns
            inside_ns = self._open.pop()
            if self._open:
                self._open[-1] += took_ns
            self._phases[at] = Phase(
                kind=PhaseKind.IMPORT,
                name=module,
                depth=depth,
                offset_ns=begin_ns - self._begin_ns,
                duration_ns=took_ns,
                self_ns=took_ns - inside_ns,
            )

    def ready(self):
        """The start is over."""
        self.stop()
        took_ns = time.monotonic_ns() - self._begin_ns
        phases = tuple(phase for phase in self._phases if phase is not None)
        self._desk.report(
            Startup(began_wall_ns=self._wall_ns, duration_ns=took_ns, threshold_ns=LIMIT_NS, phases=phases)
        )


def new_module(name, globals, fromlist, level):
    """The first module that this import has to load; None: all are there."""
    if level:  # `from . import orders`, `from .orders import load`
        package = ((globals or {}).get("__package__") or "").rsplit(".", level - 1)[0]
        name = f"{package}.{name}" if name else package
    if name not in sys.modules:
        return name
    if not hasattr(sys.modules[name], "__path__"):  # no package: it has no modules in it
        return None
    inside = (f"{name}.{one}" for one in fromlist or () if not hasattr(sys.modules[name], one))
    return next((one for one in inside if one not in sys.modules and not one.endswith(".*")), None)


_running = None


def ready():
    """For the program: it can be used from now on. Does nothing where loopcanary does not run."""
    global _running
    tracer, _running = _running, None
    if tracer is not None:
        tracer.ready()
