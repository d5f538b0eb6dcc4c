"""Every format, read back by its own schema or reader."""

from __future__ import annotations

import gc
import io
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import IO

import pytest
from hypothesis import given, settings
from tests.building.anything import any_of
from tests.building.stalls import BEGAN, HOSTILE, KILLED, MS, STALL, S, hostile_stall, stall
from tests.exporters.conftest import can_write, need, written
from tests.exporters.readers import READERS

from loopcanary.exporters import Exported, ExportError, Format, find, names
from loopcanary.exporters.spans import events, stretches, weights
from loopcanary.model import Stall

NAMES = sorted(names())
OLD = replace(STALL, id="s1-3", began_wall_ns=BEGAN + 5 * S, timeline=None)
UNSEEN = replace(
    STALL, id="s1-4", began_wall_ns=BEGAN + 9 * S, samples=0, stacks=(), timeline=None, culprit=None
)
STACKS_NS = 412 * MS
"""What the stacks of the old stall weigh together."""


@pytest.mark.parametrize("form", NAMES)
def test_a_format_has_all_time_and_its_reader_takes_it(form: str) -> None:
    assert READERS[form](written(form, [STALL, UNSEEN])) == STALL.duration_ns + UNSEEN.duration_ns


@pytest.mark.parametrize("form", NAMES)
def test_stalls_without_timeline_show_their_stacks(form: str) -> None:
    told = READERS[form](written(form, [OLD]))
    has_all = form in ("csv", "jsonl", "matrix", "chrome", "perfetto")
    assert told == (OLD.duration_ns if has_all else STACKS_NS)


@pytest.mark.parametrize("form", NAMES)
@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_no_text_of_the_watched_program_breaks_a_format(form: str, text: str) -> None:
    stalls = [replace(hostile_stall(text, number), began_wall_ns=BEGAN + number * S) for number in (0, 1)]
    assert READERS[form](written(form, stalls, {})) == sum(one.duration_ns for one in stalls)


@pytest.mark.parametrize("form", NAMES)
def test_the_same_stalls_make_the_same_bytes(form: str) -> None:
    assert written(form, [STALL, KILLED]) == written(form, [STALL, KILLED])


@settings(max_examples=15)
@given(one=any_of(Stall))
def test_any_stall_that_a_store_can_hold_is_written(one: Stall) -> None:
    for form in NAMES:
        if can_write(form):
            assert isinstance(written(form, [one]), bytes)


def _many(count: int) -> Iterator[Stall]:
    for number in range(count):
        session = f"s{number * 4 // count}"
        gc.collect()  # what is garbage by now is none that is kept
        yield stall(id=f"{session}-{number}", session=session, began_wall_ns=BEGAN + number * S)


def _peak_bytes(form: str, count: int) -> tuple[int, int]:
    """(memory that an export needs at most, bytes that it wrote)"""

    class Sink(io.RawIOBase):
        length = 0

        def writable(self) -> bool:
            return True

        def write(self, data: bytes) -> int:
            self.length += len(data)
            return len(data)

    sink = Sink()
    found = find(form)
    assert found is not None
    gc.freeze()  # collections of the tests' own objects would take long
    tracemalloc.start()
    try:
        found.write(Exported(stalls=_many(count), origin_wall_ns=BEGAN), sink)
        return tracemalloc.get_traced_memory()[1], sink.length
    finally:
        tracemalloc.stop()
        gc.unfreeze()


@pytest.mark.parametrize("form", NAMES)
def test_more_stalls_need_no_more_memory(form: str) -> None:
    need(form)
    _peak_bytes(form, 8)  # what is loaded and made once
    few, _ = _peak_bytes(form, 16)
    many, length = _peak_bytes(form, 256)
    # 240 stalls more; each of them is 5 kB and more in memory.
    assert many - few < 600_000, f"{length} bytes written"


# ---- one after the other -----------------------------------------------------------------------


def test_stretches_cover_the_stall_in_order() -> None:
    edge = 0
    for stretch in stretches(STALL):
        assert stretch.begin_ns == edge
        edge += stretch.length_ns
    assert edge == STALL.duration_ns


def test_weights_add_up_to_the_stall() -> None:
    assert sum(length_ns for _, length_ns, _ in weights(STALL)) == STALL.duration_ns


def test_left_out_outer_frames_are_marked() -> None:
    roots = {frames[0].function for frames, _, _ in weights(STALL)}
    assert "(outer frames left out)" in roots


def test_a_frame_that_neighbours_share_goes_on_through_both() -> None:
    shared = replace(STALL.stacks[1], truncated=False)
    one = replace(STALL, stacks=(STALL.stacks[0], shared))
    entered = [event.entered.function for event in events(one) if event.entered is not None]
    # `main` to `load_orders` stand in all three spans; what they call, in the first and the last.
    assert entered.count("main") == entered.count("load_orders") == 1
    assert entered.count("raw_decode") == 2


@settings(max_examples=20)
@given(one=any_of(Stall))
def test_every_frame_that_is_entered_is_left(one: Stall) -> None:
    depth = 0
    for event in events(one):
        depth += 1 if event.entered is not None else -1
        assert depth >= 0
    assert depth == 0


# ---- the table of formats ----------------------------------------------------------------------


def test_the_table_has_every_file_of_a_format() -> None:
    from loopcanary import exporters

    [folder] = exporters.__path__
    files = {path.stem.removeprefix("as_") for path in Path(folder).glob("as_*.py")}
    assert files | {"perfetto"} == set(NAMES) == set(READERS)


def test_a_missing_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "loopcanary.exporters.as_pprof", raising=False)
    for name in [name for name in sys.modules if name.partition(".")[0] == "google"]:
        monkeypatch.delitem(sys.modules, name)

    class Blocked:
        @staticmethod
        def find_spec(name: str, *_: object) -> None:
            if name.partition(".")[0] == "google":
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr(sys, "meta_path", [Blocked, *sys.meta_path])
    with pytest.raises(ExportError, match=r"needs protobuf.*loopcanary\[export\]"):
        find("pprof")


def _write(exported: Exported, out: IO[bytes]) -> None:
    del exported, out


THEIRS = Format(name="theirs", write=_write)


@pytest.fixture
def theirs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], None]:
    """theirs(code): a package is installed whose entry point is `FORMAT` of that code."""

    def install(code: str) -> None:
        metadata = tmp_path / "theirs-1.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1\n")
        (metadata / "entry_points.txt").write_text(
            "[loopcanary_tools.exporters]\ntheirs = theirs_format:FORMAT\n"
        )
        (tmp_path / "theirs_format.py").write_text(code)
        monkeypatch.delitem(sys.modules, "theirs_format", raising=False)
        monkeypatch.syspath_prepend(tmp_path)

    return install


def test_a_third_partys_format_is_found(theirs: Callable[[str], None]) -> None:
    theirs(f"from {__name__} import THEIRS as FORMAT")
    assert find("theirs") is THEIRS
    assert names()[-1] == "theirs"


@pytest.mark.parametrize(
    "code", ["FORMAT = object()", "raise RuntimeError('broken')", "import no_such_thing"]
)
def test_a_third_partys_format_that_is_none_is_an_error(code: str, theirs: Callable[[str], None]) -> None:
    theirs(code)
    with pytest.raises(ExportError, match="theirs"):
        find("theirs")


def test_an_unknown_format_is_none() -> None:
    assert find("svg") is None
