"""Pieces of work of one package that took too long, as trees of its own calls.

By sys.setprofile, so that it is short and runs on every Python: each call of any function then costs about a
microsecond. It sees the thread on which loopcanary starts.
"""

from __future__ import annotations

import os
import sys
import time

from loopcanary.model import CallRow, SlowMethod, StackFrame

PACKAGE = os.environ.get("EXAMPLE_METHODS", "shop")
LIMIT_NS = 700_000_000
CALLS_MAX = 5_000
"""Of one piece of work; further ones are part of those around them."""


class Call:
    """All calls of one function by one path."""

    def __init__(self, code):
        self.code = code
        self.count = self.total_ns = 0
        self.inside = {}


class MethodTracer:
    """One profile function, which takes itself back."""

    name = "methods"
    on_program_thread = True

    def init(self, desk):
        self._desk = desk
        self._open = []
        self._kept = 0
        self._is_on = False

    def start(self):
        self._is_on = True
        sys.setprofile(self._seen)

    def stop(self):
        # Any thread may ask for this, and each takes back its own only: `_seen` does it.
        self._is_on = False

    def _seen(self, frame, event, _):
        if not self._is_on:
            sys.setprofile(None)
            return
        try:
            if event == "call" and frame.f_globals.get("__name__", "").partition(".")[0] == PACKAGE:
                self._begin(frame.f_code)
            elif event == "return" and self._open and self._open[-1][0].code is frame.f_code:
                self._end()
        except Exception as error:  # the program must not see it
            self._desk.failed(error)

    def _begin(self, code):
        inside = self._open[-1][0].inside if self._open else {}
        call = inside.get(code)
        if call is None:
            call = Call(code)
            if self._kept < CALLS_MAX:
                inside[code] = call
                self._kept += 1
        self._open.append((call, time.monotonic_ns()))

    def _end(self):
        call, begin_ns = self._open.pop()
        took_ns = time.monotonic_ns() - begin_ns
        call.count += 1
        call.total_ns += took_ns
        if self._open:
            return
        self._kept = 0
        if took_ns > LIMIT_NS:
            self._desk.report(
                SlowMethod(
                    began_wall_ns=time.time_ns() - took_ns,
                    duration_ns=took_ns,
                    threshold_ns=LIMIT_NS,
                    rows=tuple(rows(call)),
                )
            )


def rows(call):
    """The tree as rows, each before those inside it."""
    todo = [(0, call)]
    while todo:
        depth, one = todo.pop()
        todo += [(depth + 1, inside) for inside in reversed(one.inside.values())]
        yield CallRow(
            frame=StackFrame(
                function=one.code.co_name,
                qualname=one.code.co_qualname,
                file=one.code.co_filename,
                line=one.code.co_firstlineno,
                in_app=True,
            ),
            depth=depth,
            count=one.count,
            total_ns=one.total_ns,
            self_ns=max(0, one.total_ns - sum(inside.total_ns for inside in one.inside.values())),
        )
