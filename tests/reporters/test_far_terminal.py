"""What is to be shown on another process's stderr."""

from __future__ import annotations

import pytest

from loopcanary.protocols.plugins import Look
from loopcanary.reporters.far_terminal import FarTerminal


def texts(screen: FarTerminal) -> list[bytes]:
    found = []
    while screen.first is not None:
        found.append(screen.first)
        screen.shown()
    return found


def test_texts_wait_in_order_until_they_are_handed_on():
    screen = FarTerminal({}, "")
    assert screen.first is None
    screen.write("one\n")
    screen.write("two\n")
    assert texts(screen) == [b"one\n", b"two\n"]


def test_a_long_block_is_cut_between_lines():
    screen = FarTerminal({}, "")
    screen.write("".join(f"{number:099}\n" for number in range(200)))
    parts = texts(screen)
    assert b"".join(parts).count(b"\n") == 200
    assert [len(part) for part in parts] == [8100, 8100, 3800]


def test_a_line_that_is_too_long_is_cut():
    screen = FarTerminal({}, "")
    screen.write("a\n" + "x" * 20_000 + "\nb\n")
    assert [len(part) for part in texts(screen)] == [2, 8_192, 2]


def test_the_oldest_make_room():
    screen = FarTerminal({}, "")
    for number in range(100):
        screen.write(f"{number}\n")
    assert (screen.dropped, screen.first) == (36, b"36\n")


@pytest.mark.parametrize(
    ("facts", "look"),
    [
        ({}, Look(folder="/srv")),
        (
            {"terminal": True, "columns": 100, "color": True, "links": True},
            Look(colour=True, links=True, width=100, folder="/srv"),
        ),
        ({"terminal": True, "columns": 10**9}, Look(width=120, folder="/srv")),
        ({"terminal": "yes", "columns": "wide", "color": 1, "links": []}, Look(folder="/srv")),
    ],
    ids=["nothing", "all", "too wide", "lies"],
)
def test_it_looks_as_its_process_says(facts, look):
    assert FarTerminal(facts, "/srv").look() == look


def test_a_bell_rings_with_the_text_before_it():
    screen = FarTerminal({}, "")
    screen.write("\a")
    screen.write("größe\n")
    screen.write("\a")
    assert texts(screen) == [b"\a\n", "größe\a\n".encode()]
