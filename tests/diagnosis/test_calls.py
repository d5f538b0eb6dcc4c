"""The text of a call from the columns that CPython itself gives."""

from __future__ import annotations

import sys
import tracemalloc
import zipfile
from pathlib import Path

import pytest

from loopcanary.diagnosis.code.call_sites import CallSite, callee_of, find_call, one_line, shorten
from loopcanary.model import Frame
from loopcanary.source_text import FileSources


def sites_of(source: str, name: str = "boom") -> CallSite:
    """The call site of the frame that calls `name`, by the columns of the running interpreter."""
    found: list[CallSite] = []

    def note(*_args: object, **_more: object) -> object:
        caller = sys._getframe(1)
        positions = list(caller.f_code.co_positions())[caller.f_lasti // 2]
        line, end_line, column, end_column = (value or 0 for value in positions)
        frame = Frame(
            qualname="f",
            file="f.py",
            line=line,
            end_line=end_line,
            column=column + 1,
            end_column=end_column + 1,
        )
        found.append(find_call(tuple(source.split("\n")), frame))
        return Chain()

    class Chain:
        def __getattr__(self, _name: str) -> object:
            return note if _name == name else lambda *_args, **_more: self

        __delitem__ = note

    exec(compile(source, "f.py", "exec"), {name: note, "chain": Chain(), "x": 1})
    return found[0]


@pytest.mark.parametrize(
    ("source", "text", "callee"),
    [
        ("boom(1)", "boom(1)", "boom"),
        ("y = [boom(x)] + []", "boom(x)", "boom"),
        ("chain.boom(x)", "chain.boom(x)", "chain.boom"),
        ("chain.query(x)[0] if 0 else chain.query(x).boom()", "chain.query(x).boom()", "chain.query.boom"),
        ("print(boom(  'é', \"ü\"  ), end='')", "boom(  'é', \"ü\"  )", "boom"),
        ("y = 'éé'; boom('é')", "boom('é')", "boom"),
        ("boom(\n    1,  # one\n    'a # b',\n)", "boom(1, 'a # b')", "boom"),
        (
            "y = (\n    chain.query(x)\n    .filter(1)\n    .boom()\n)",
            "chain.query(x).filter(1).boom()",
            None,
        ),
        ("if x:\n\ty = [boom(i) for i in (1,)]", "boom(i)", "boom"),
    ],
)
def test_a_call_as_written(source, text, callee):
    site = sites_of(source)
    assert site.text == text
    assert site.callee == (callee or "chain.query.filter.boom")


def test_the_call_is_marked_in_its_line():
    site = sites_of("if x:\n    y = 'é' + str(boom(x))")
    assert site.source == "y = 'é' + str(boom(x))"
    assert site.source[site.column - 1 : site.end_column - 1] == "boom(x)"


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("if x: del chain['k']", "del chain['k']"),
        ("del chain.rows(1)['k']", "del chain.rows(1)['k']"),
        ("del boom(x)[0]", "boom(x)"),
    ],
)
def test_what_a_del_frees_is_no_call_of_its_target(source, text):
    site = sites_of(source)
    assert site.text == text
    assert site.source[site.column - 1 : site.end_column - 1] == text


@pytest.mark.parametrize(
    ("title", "frame"),
    [
        ("beyond the line", {"line": 1, "column": 90, "end_column": 99}),
        ("an end beyond the line", {"line": 1, "column": 1, "end_column": 99}),
        ("an end before the begin", {"line": 1, "column": 5, "end_column": 2}),
        ("blank", {"line": 2, "column": 1, "end_column": 3}),
    ],
)
def test_columns_that_do_not_fit_give_nothing(title, frame):
    line = frame["line"]
    found = find_call(("time.sleep(1)", "    "), Frame(qualname="f", file="f.py", end_line=line, **frame))
    assert found == CallSite(), title


def test_without_columns_the_line_is_still_shown():
    found = find_call(("  time.sleep(1)",), Frame(qualname="f", file="f.py", line=1))
    assert found == CallSite(source="time.sleep(1)")


def test_long_arguments_are_cut_and_the_bracket_closed():
    text = shorten("session.execute(" + "column, " * 30 + "last)")
    assert len(text) == 80
    assert text.startswith("session.execute(column")
    assert text.endswith("…)")


def test_a_long_chain_keeps_its_end():
    text = shorten("session" + ".filter(User.name == name)" * 9 + ".all()")
    assert len(text) <= 80
    assert text.startswith("…")
    assert text.endswith(".all()")


@pytest.mark.parametrize(
    ("text", "callee"),
    [
        ("json.loads(body)", "json.loads"),
        ("await client.get(url)", "client.get"),
        ("session.query(User).filter(x)[0].all()", "session.query.filter.all"),
        ("self._lock", None),
        ("a @ b", None),
        ("f()()", "f"),
        ("', '.join(names)", "str.join"),
        ("….all()", "all"),
        ("(lambda: 1)()", None),
        ("x = y)", None),
    ],
)
def test_what_is_called(text, callee):
    assert callee_of(text) == callee


@pytest.mark.parametrize(
    ("lines", "end_line", "text"),
    [
        (("with self._lock:", "    pass"), 2, "with self._lock"),
        (("with lock: pass",), 1, "with lock"),
        (("with (", "    first({1: 2}),", "    lock,", "):", "    pass"), 5, "with (first({1: 2}), lock)"),
        (("with self._lock:", *["    pass"] * 500), 501, "with self._lock"),
    ],
)
def test_of_a_statement_with_a_body_the_header_is_shown(lines, end_line, text):
    end = len(lines[end_line - 1]) + 1
    found = find_call(
        lines, Frame(qualname="f", file="f", line=1, end_line=end_line, column=1, end_column=end)
    )
    assert (found.text, found.callee) == (text, None)


def test_half_an_expression_is_joined_all_the_same():
    assert one_line(["f(a,", "   'unfinished", "   b)"]) == "f(a, 'unfinished b)"


def test_sources_are_read_again_after_a_change(tmp_path: Path):
    file, sources = tmp_path / "a.py", FileSources()
    file.write_text("one = 1\n")
    assert sources.read(str(file)).lines[0] == "one = 1"
    file.write_text("two = 22\n")
    assert sources.read(str(file)).lines[0] == "two = 22"


def test_sources_follow_the_files_own_encoding(tmp_path: Path):
    file = tmp_path / "a.py"
    file.write_bytes("# coding: latin-1\nx = 'é'\n".encode("latin-1"))
    assert FileSources().read(str(file)).lines[1] == "x = 'é'"


def test_a_small_source_takes_little_memory(tmp_path: Path):
    file, sources = tmp_path / "a.py", FileSources()
    file.write_text("one = 1\n" * 99)
    tracemalloc.start()
    try:
        assert sources.read(str(file)) is not None
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 1 << 20


@pytest.mark.parametrize("packed", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED], ids=["stored", "packed"])
def test_sources_in_an_archive_are_read(tmp_path: Path, packed: int):
    archive = tmp_path / "app.pyz"
    with zipfile.ZipFile(archive, "w", packed) as opened:
        opened.writestr("web/views.py", "one = 1\n")
        opened.writestr("web/long.py", "#" * (4 << 20 | 1))
    sources = FileSources()
    assert sources.read(f"{archive}/web/views.py").lines[0] == "one = 1"
    assert sources.read(f"{archive}/web/views.py").modified_wall_ns == archive.stat().st_mtime_ns
    others = ("web/long.py", "web", "none.py", "../app.pyz", "web/views.py/none.py")
    assert [name for name in others if sources.read(f"{archive}/{name}") is not None] == []


def test_a_damaged_archive_has_no_text(tmp_path: Path):
    archive = tmp_path / "app.pyz"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as opened:
        opened.writestr("views.py", "one = 1\n" * 99)
    whole = archive.read_bytes()
    archive.write_bytes(whole[:40] + b"\xff" * 9 + whole[49:])
    assert FileSources().read(f"{archive}/views.py") is None
    archive.write_bytes(whole[:40])
    assert FileSources().read(f"{archive}/views.py") is None


def test_what_is_no_readable_text_gives_none(tmp_path: Path):
    binary = tmp_path / "a.so"
    binary.write_bytes(b"\xff\xfe\x00\x01" * 9)
    sources = FileSources()
    for name in (str(binary), str(tmp_path), str(tmp_path / "none.py"), "a\0b", "", "<made up>"):
        assert sources.read(name) is None
