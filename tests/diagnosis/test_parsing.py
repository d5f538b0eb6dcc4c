"""Trees that are made while the program makes one."""

from __future__ import annotations

import ast
import gc
import sys
import threading

import pytest

from loopcanary.diagnosis.code.syntax import HAS_ONE_COUNT, expression, parses, statement

DEEP = 40
TEXT = f"x = [{'f(a, b, c), ' * 200}]"
GIVES_UP_S = 60


class Program(threading.Thread):
    """Makes a tree, and stays in the middle of it, where the collector has called it, until it may go on."""

    def __init__(self):
        super().__init__()
        self.is_inside, self.may_go = threading.Event(), threading.Event()
        self.tree = None

    def run(self):
        gc.callbacks.append(self._collects)
        try:
            self._parse(DEEP)
        finally:
            gc.callbacks.remove(self._collects)

    def _parse(self, depth):
        if depth:
            self._parse(depth - 1)
        else:
            self.tree = ast.parse(TEXT)

    def _collects(self, phase, _info):
        caller = sys._getframe(1)
        if phase == "stop" and caller.f_code is ast.parse.__code__ and not self.is_inside.is_set():
            self.is_inside.set()
            self.may_go.wait(GIVES_UP_S)


@pytest.fixture
def program():
    before = gc.get_threshold()
    gc.set_threshold(50)
    program = Program()
    program.start()
    yield program
    program.may_go.set()
    program.join()
    gc.set_threshold(*before)


@pytest.mark.skipif(not HAS_ONE_COUNT, reason="this CPython counts the depth of each tree by itself")
def test_a_tree_of_the_program_is_not_disturbed(program):
    assert program.is_inside.wait(GIVES_UP_S)
    with pytest.raises(ValueError, match="the program makes a syntax tree"):
        expression("load(path)")
    program.may_go.set()
    program.join()
    assert program.tree is not None
    assert ast.unparse(expression("load(path)")) == "load(path)"


@pytest.mark.skipif(not HAS_ONE_COUNT, reason="this CPython counts the depth of each tree by itself")
def test_no_collection_begins_in_a_tree_of_ours(monkeypatch):
    seen = []

    def compiled(*arguments):
        seen.append(gc.isenabled())
        return compile(*arguments)

    monkeypatch.setattr("loopcanary.diagnosis.code.syntax.compile", compiled, raising=False)
    assert isinstance(statement("total += 1"), ast.AugAssign)
    assert (seen, gc.isenabled()) == ([False], True)


def test_what_is_no_source_is_said():
    assert parses("load(path)")
    assert not parses("load(path")
    assert isinstance(statement("total += 1"), ast.AugAssign)
    with pytest.raises(IndexError):
        statement("")
