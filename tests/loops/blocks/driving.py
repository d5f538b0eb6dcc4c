"""Drives a toolkit's loop through the blocks of tests/program/programs/blocks.py and others, one by one.

    <toolkit>_blocks.py TRUTH_FILE FOLDER VARIANT KIND...

A program sets `drive.later` and, if it has inner loops, `drive.inner`; it registers blocks of its own by
`own`, and calls `drive.main`. An own block is a generator: where it yields, it waits until `drive.go_on` is
called.
The line that blocks bears a `culprit` comment. VARIANT is the program's: a binding, a reactor, a store.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "program/programs"))
import blocks
from clock import BlockClock

TRUTH_FILE, FOLDER, VARIANT, *KINDS = sys.argv[1:]
LONG_S = blocks.LONG_S
OWN = {}


def own(block):
    OWN[block.__name__] = block
    return block


class Drive:
    """`later(function, milliseconds)`: the toolkit calls it, in a turn of its own. `inner()`: a loop inside a
    callback, with `run` and `end`."""

    later = None
    inner = None

    def go_on(self):
        self.later(self._step)

    def _step(self):
        next(self._steps, None)

    def then(self, clock):
        """The next turn is the first thing after the block."""
        self.later(lambda: self.arrived(clock))

    def arrived(self, clock):
        clock.after()
        self.go_on()

    def by_timer(self, block, clock, prepared):
        def call():
            block(clock, *prepared)
            self.then(clock)

        self.go_on()
        yield
        clock.before()
        self.later(call)
        yield

    def main(self, run, end):
        """`run`: the toolkit's main loop; `end` ends it."""
        blocks.FOLDER = Path(FOLDER)
        sys.path.append(FOLDER)
        gc.disable()  # collections come when `collection` says so
        blocks.HELPER.submit(int).result()  # to start a thread is to wait until it runs: not in the loop
        truth = []
        prepared = self._prepared()  # freed when the loop has ended: that alone may take as long as a stall
        self._steps = self._all(prepared, truth, end)
        self.go_on()
        run()
        Path(TRUTH_FILE).write_text(json.dumps(truth))

    def _prepared(self):
        """Made before any loop runs: it would wait for the GIL meanwhile."""
        made = {name: OWN.get(name) or blocks.KINDS[name][1] for name in KINDS}
        return {name: (block.prepare(),) if hasattr(block, "prepare") else () for name, block in made.items()}

    def _all(self, prepared, truth, end):
        for name in KINDS:
            clock = BlockClock(name)
            if name in OWN:
                yield from OWN[name](clock, *prepared[name])
            else:
                yield from self.by_timer(blocks.KINDS[name][1], clock, prepared[name])
            truth.append(clock.facts)
            gc.collect(0)
            self.go_on()
            yield
        end()


drive = Drive()


@own
def in_an_inner_loop(clock):
    """The inner loop runs the block, and stays for longer than it."""

    def inside():
        with clock:
            time.sleep(LONG_S)  # culprit of in_an_inner_loop
        drive.later(arrive)

    def arrive():
        clock.after()
        drive.later(inner.end, 200)

    def opens():
        drive.later(begin, 200)
        inner.run()
        drive.go_on()

    def begin():
        clock.before()
        drive.later(inside)

    inner = drive.inner()
    drive.later(opens)
    yield


@own
def after_an_inner_loop(clock):
    """What a callback does when its inner loop has ended is the callback's."""

    def opens():
        drive.later(closes, 200)
        inner.run()
        with clock:
            time.sleep(LONG_S)  # culprit of after_an_inner_loop
        drive.then(clock)

    def closes():
        clock.before()
        inner.end()

    inner = drive.inner()
    drive.later(opens)
    yield


@own
def burst(clock):
    def short():
        began = time.perf_counter_ns()
        while time.perf_counter_ns() - began < 500_000:
            pass
        longest[0] = max(longest[0], time.perf_counter_ns() - began)

    longest = [0]
    for _ in range(600):
        drive.later(short)
    drive.then(clock)
    time.sleep(0.005)  # all of them are due: they are called in one turn
    clock.before()
    yield
    clock.facts["longest_callback_ns"] = longest[0]


def fail(*error):
    """Ends the program: nothing would go on."""
    traceback.print_exception(*error)
    os._exit(1)
