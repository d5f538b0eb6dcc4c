"""What handlers of input are called, for any object that a program may connect."""

from __future__ import annotations

from functools import partial
from unittest.mock import MagicMock

from loopcanary.probes.glib import GtkWindows


class Told:
    """Tracers, and their trace of input."""

    def __init__(self):
        self.names = []

    def input(self, _kind):
        return self

    def handled(self, name, *_):
        self.names.append(name)


def pressed():
    """A handler."""


def name_of(handler):
    told = Told()
    GtkWindows(MagicMock(), told, MagicMock()).heard("KeyPress", 0, 1, 2, "key-pressed", handler)
    return told.names


def test_a_partial_goes_by_the_name_of_its_function():
    assert name_of(partial(partial(pressed), 1)) == ["key-pressed: pressed (KeyPress)"]


def test_an_object_that_has_any_attribute_goes_by_its_type():
    assert name_of(MagicMock()) == ["key-pressed: MagicMock (KeyPress)"]
