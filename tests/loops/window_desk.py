"""The head of programs whose windows are looked at: the tracer of windows, with a desk of the test's own."""

from __future__ import annotations

HEAD = """
import json
from loopcanary.probes import ImportWatch
from loopcanary.tracers.windows.tracer import WindowTracer

class Desk:
    def __init__(self):
        self.issues, self.errors = [], []
    def report(self, issue):
        self.issues.append(issue)
        return True
    def failed(self, error):
        self.errors.append(repr(error))

desk = Desk()
tracer = WindowTracer(40_000_000, lambda file: file == "<string>", ImportWatch)
tracer.init(desk)

def told():
    return sorted([one.blocked_by, one.subject, one.switched_on[0].function] for one in desk.issues)

def is_told(what):
    return any(one.blocked_by == what for one in desk.issues)

def say(**more):
    print(json.dumps({"told": told(), "errors": desk.errors, **more}))
"""
