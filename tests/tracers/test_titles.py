"""Titles of windows as scenes: few, short, printable."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from loopcanary.tracers.titles import LENGTH_MAX, OTHER_TITLES, TITLES_MAX, VARIANTS_MAX, Titles
from loopcanary.words.text import printable


def test_a_title_is_its_window_s_scene():
    assert Titles().scene_of("Orders", "QMainWindow") == "Orders"


def test_a_window_without_a_title_goes_by_its_class():
    assert Titles().scene_of("", "QMainWindow") == "QMainWindow"


def test_a_counter_is_one_scene_after_a_few():
    titles = Titles()
    scenes = [titles.scene_of(f"Inbox ({count})", "Tk") for count in range(200)]
    assert scenes[:VARIANTS_MAX] == [f"Inbox ({count})" for count in range(VARIANTS_MAX)]
    assert set(scenes[VARIANTS_MAX:]) == {"Inbox (#)"}


def test_documents_of_one_program_are_one_scene_after_a_few():
    titles = Titles()
    scenes = [titles.scene_of(f"{name}.txt - Editor", "Tk") for name in "abcdefgh"]
    assert scenes[0] == "a.txt - Editor"
    assert set(scenes[VARIANTS_MAX:]) == {"... - Editor"}
    # What was told keeps its name.
    assert titles.scene_of("a.txt - Editor", "Tk") == "a.txt - Editor"


def test_a_document_that_was_changed_is_the_same():
    titles = Titles()
    assert titles.scene_of("*a.txt - Editor", "Tk") == titles.scene_of("a.txt - Editor", "Tk")


def test_titles_of_no_form_at_all_have_an_end():
    titles = Titles()
    words = [chr(ord("a") + first) + chr(ord("a") + second) for first in range(26) for second in range(26)]
    scenes = {titles.scene_of(word, "Tk") for word in words}
    assert len(scenes) == TITLES_MAX + 1
    assert titles.scene_of("yet another", "Tk") == OTHER_TITLES


def test_a_title_moves_no_cursor():
    assert titles_of("Save\n\x1b[2J\u202etxt.exe") == r"Save\n\x1b[2J\u202etxt.exe"


def titles_of(title: str) -> str:
    return Titles().scene_of(title, "Tk")


@given(st.lists(st.text(), max_size=200))
def test_whatever_titles_say_there_are_few_scenes_and_short_ones(told):
    titles = Titles()
    scenes = {titles.scene_of(title, "Tk") for title in told}
    assert len(scenes) <= TITLES_MAX + 1
    assert all(len(scene) <= LENGTH_MAX + 3 and scene == printable(scene) for scene in scenes)
