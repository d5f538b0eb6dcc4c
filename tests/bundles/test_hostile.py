"""A file that is no bundle, or a spoilt one, is refused in one sentence, and nothing of it is kept."""

from __future__ import annotations

import io
import json
import struct
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.building.issues import JANK
from tests.building.stalls import STALL
from tests.bundles.samples import NOW, Taken, bundled, members_of, retold, rezipped, taken

from loopcanary.bundles import layout
from loopcanary.bundles.layout import BundleError
from loopcanary.bundles.reading import read_bundle
from loopcanary.model.search import IssueQuery
from loopcanary.store import Store
from loopcanary.wire import to_wire

GOOD = members_of(bundled())
STALLS = layout.member_name(layout.STALLS, 1)


def with_member(name: str, data: bytes = b"{}\n") -> bytes:
    return rezipped(retold({**GOOD, name: data}))


def with_line(line: bytes, kind: str = layout.STALLS) -> bytes:
    """A bundle whose first record of a kind is this line, and that fits its manifest."""
    name = layout.member_name(kind, 1)
    return rezipped(retold({**GOOD, name: line + b"\n" + GOOD[name]}))


def with_stall(**changes: Any) -> bytes:
    return with_line(json.dumps({**to_wire(STALL), **changes}).encode())


def with_issue(**changes: Any) -> bytes:
    return with_line(json.dumps({**to_wire(JANK), **changes}).encode(), layout.ISSUES)


def spoilt(**changes: Any) -> bytes:
    def change(info: zipfile.ZipInfo) -> None:
        if info.filename == STALLS:
            for name, value in changes.items():
                setattr(info, name, value)

    return rezipped(GOOD, change)


def twice() -> bytes:
    out = io.BytesIO(rezipped(GOOD))
    with zipfile.ZipFile(out, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr(STALLS, GOOD[STALLS])
    return out.getvalue()


def patched(data: bytes, of: bytes, offset: int, form: str, value: int) -> bytes:
    """The zip with another number in the directory's entry, or local header, of the stalls."""
    name_at = {CENTRAL: 46, LOCAL: 30}[of]
    place = next(
        at
        for at in range(len(data))
        if data[at:].startswith(of) and data[at + name_at :].startswith(STALLS.encode())
    )
    changed = bytearray(data)
    struct.pack_into(form, changed, place + offset, value)
    return bytes(changed)


CENTRAL, LOCAL = b"PK\x01\x02", b"PK\x03\x04"


def encrypted() -> bytes:
    return patched(patched(rezipped(GOOD), CENTRAL, 8, "<H", 1), LOCAL, 6, "<H", 1)


def bomb() -> bytes:
    return with_member(layout.member_name(layout.STALLS, 2), b" " * (8 << 20) + b"\n")


def understated() -> bytes:
    """A member that unpacks to more than it says."""
    return patched(rezipped(GOOD), CENTRAL, 24, "<L", 100)


def wrong_checksum() -> bytes:
    data = bytearray(rezipped(GOOD, method=zipfile.ZIP_STORED))
    data[data.index(b'"session":"s1"') + 11] ^= 1
    return bytes(data)


def broken_deflate() -> bytes:
    data = bytearray(rezipped(GOOD))
    at = data.index(STALLS.encode()) + len(STALLS) + 40
    data[at : at + 60] = bytes(60)
    return bytes(data)


def manifest(**changes: Any) -> bytes:
    return rezipped(retold(GOOD, **changes))


def without(name: str) -> bytes:
    return rezipped({key: value for key, value in GOOD.items() if key != name})


DEEP = b"[" * 100_000 + b"]" * 100_000
HOSTILE: dict[str, tuple[Callable[[], bytes], str]] = {
    "nothing": (lambda: b"", "not a zip"),
    "text": (lambda: b"hello\n" * 100, "not a zip"),
    "an empty zip": (lambda: rezipped({}), "no manifest.json"),
    "somebody else's zip": (lambda: rezipped({"a.txt": b"hello"}), "not a member that bundles have"),
    "somebody else's manifest": (lambda: rezipped({"manifest.json": b'{"format": "x"}\n'}), "not a bundle"),
    "a path upwards": (lambda: with_member("../evil.jsonl"), "not a member that bundles have"),
    "an absolute path": (lambda: with_member("/etc/passwd"), "not a member that bundles have"),
    "a path of Windows": (lambda: with_member("C:\\evil"), "not a member that bundles have"),
    "a folder": (lambda: with_member("stalls-0002.jsonl/"), "not a member that bundles have"),
    "a name cut by nul": (
        lambda: rezipped(GOOD).replace(b"issues-0001.jsonl", b"issues-000\0.jsonl"),
        "member",
    ),
    "a link": (lambda: spoilt(external_attr=0o120777 << 16), "not a plain file"),
    "a device": (lambda: spoilt(external_attr=0o060600 << 16), "not a plain file"),
    "a name twice": (twice, "in it twice"),
    "a password": (encrypted, "encrypted"),
    "another compression": (lambda: rezipped(GOOD, method=zipfile.ZIP_LZMA), "compressed in a way"),
    "a line that is nothing but space": (bomb, "line 1"),
    "a size that is not its own": (understated, "broken|cut short|does not hold|larger"),
    "a size that none has": (
        lambda: patched(rezipped(GOOD), CENTRAL, 24, "<L", 200 << 20),
        "larger than a member",
    ),
    "a size of 64 bits": (lambda: patched(rezipped(GOOD), CENTRAL, 24, "<L", 0xFFFFFFFF), "broken|larger"),
    "a place outside": (lambda: patched(rezipped(GOOD), CENTRAL, 42, "<L", 1 << 30), "broken"),
    "a wrong checksum": (wrong_checksum, "CRC"),
    "packed bytes that are none": (broken_deflate, "broken"),
    "half of it": (lambda: rezipped(GOOD)[: len(rezipped(GOOD)) // 2], "cut short"),
    "all but a byte": (lambda: rezipped(GOOD)[:-1], "cut short"),
    "something behind it": (lambda: rezipped(GOOD) + b"x", "data after its end"),
    "something before it": (lambda: b"#!/bin/sh\n" + rezipped(GOOD), "directory is not at the end"),
    "too many members": (
        lambda: rezipped({f"stalls-{n:04}.jsonl": b"" for n in range(layout.MEMBERS_MAX + 1)}),
        "more than 1,000 members",
    ),
    "no manifest": (lambda: without("manifest.json"), "no manifest"),
    "a manifest that is no JSON": (lambda: rezipped({**GOOD, "manifest.json": b"{\n"}), "manifest.json"),
    "a manifest of a list": (lambda: rezipped({**GOOD, "manifest.json": b"[]\n"}), "must be an object"),
    "a manifest of a later format": (lambda: manifest(version=2), "format is 2"),
    "a manifest of later records": (lambda: manifest(schema=9), "schema 9"),
    "a manifest without a format": (lambda: manifest(format=None), "manifest.format"),
    "a manifest of other members": (lambda: manifest(members=[]), "members are not those"),
    "members that are not there": (lambda: without("sessions-0001.jsonl"), "members are not those"),
    "other bytes than the manifest's": (
        lambda: rezipped({**GOOD, STALLS: GOOD[STALLS].replace(b"412.3", b"412.4")}),
        "does not hold",
    ),
    "more lines than the manifest's": (
        lambda: rezipped({**GOOD, STALLS: GOOD[STALLS] * 2}),
        "does not hold",
    ),
    "no JSON": (lambda: with_line(b"hello"), "line 1"),
    "a list": (lambda: with_line(b"[]"), "must be an object"),
    "no UTF-8": (lambda: with_line(b'{"id":"\xff"}'), "line 1"),
    "UTF-16": (lambda: with_line("{}".encode("utf-16")), "line 1"),
    "deep nesting": (lambda: with_line(DEEP), "nested too deeply|line 1"),
    "deep nesting where nobody looks": (lambda: with_line(b'{"x":' + DEEP + b"}"), "line 1"),
    "an endless number": (lambda: with_line(b'{"pid":' + b"9" * 10_000 + b"}"), "larger than any"),
    "an endless fraction": (lambda: with_line(b'{"pid":1e999}'), "larger than any"),
    "a float out of range": (lambda: with_stall(duration_ms=1e300), "larger than any"),
    "a whole number out of range": (lambda: with_stall(pid=1 << 70), "larger than any"),
    "not a number": (lambda: with_line(b'{"pid":NaN}'), "NaN is not a number"),
    "infinity": (lambda: with_line(b'{"pid":-Infinity}'), "-Infinity is not a number"),
    "a wrong type": (lambda: with_stall(thread=7), "stall.thread"),
    "a wrong word": (lambda: with_stall(cause="magic"), "not a cause"),
    "a missing field": (lambda: with_line(b'{"id":"s1-1"}'), "stall.fingerprint"),
    "a duration less than nothing": (lambda: with_stall(duration_ms=-1.0), "negative"),
    "an id with a control character": (lambda: with_stall(id="s1\x1b[2J"), "not an id"),
    "an id with a surrogate": (lambda: with_stall(id="s1\ud800"), "not an id"),
    "an id that is empty": (lambda: with_stall(session=""), "not an id"),
    "an id without end": (lambda: with_stall(fingerprint="f" * 1_000), "not an id"),
    "a session that is none": (lambda: with_line(b"{}", layout.SESSIONS), "session.id"),
    "an issue that is none": (lambda: with_line(b'{"kind":"stall"}', layout.ISSUES), "issue"),
    "an issue of an unknown kind without facts": (
        lambda: with_line(b'{"kind":"locks"}', layout.ISSUES),
        "issue.id",
    ),
    "a kind that is no name": (lambda: with_issue(kind="a\n" + "b" * 99), "cannot be read"),
    "a kind that would hide another": (lambda: with_issue(kind="startup-quiet"), "cannot be read"),
    "a remark that is none": (lambda: with_line(b'{"fingerprint":"1:f"}', layout.REMARKS), "remark.note"),
    "a note without end": (
        lambda: with_line(
            json.dumps({"fingerprint": "1:f", "ignored": True, "note": "n" * 200_000}).encode(),
            layout.REMARKS,
        ),
        "note is too long",
    ),
}


@pytest.mark.parametrize(("make", "words"), HOSTILE.values(), ids=HOSTILE)
def test_it_is_refused_in_one_sentence_and_nothing_is_kept(
    tmp_path: Path, make: Callable[[], bytes], words: str
) -> None:
    path = tmp_path / "a.zip"
    path.write_bytes(make())
    store = Store(tmp_path / "store")
    with pytest.raises(BundleError, match=words) as refusal:
        store.take_in(lambda intake: read_bundle(path, intake, now_wall_ns=NOW) and None)
    assert "\n" not in str(refusal.value)
    assert str(refusal.value).startswith(f"{path} cannot be imported: ")
    assert not (tmp_path / "store").exists()


def test_a_good_one_is_good_when_it_is_made_by_hand(tmp_path: Path) -> None:
    """What the cases above spoil is taken when it is not spoilt."""
    assert taken(tmp_path / "a.zip", rezipped(retold(GOOD))).stalls[0] == STALL
    assert taken(tmp_path / "a.zip", with_stall(id="s1-9")).stalls[0].id == "s1-9"


def test_a_line_longer_than_any_record_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = bundled()
    monkeypatch.setattr(layout, "LINE_MAX", 1_000)
    with pytest.raises(BundleError, match="too long"):
        taken(tmp_path / "a.zip", data)


def test_all_members_together_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "TOTAL_MAX", 5_000)
    with pytest.raises(BundleError, match=r"unpack to more than 5,000"):
        taken(tmp_path / "a.zip", rezipped(GOOD))
    monkeypatch.setattr(layout, "FILE_MAX", 500)
    with pytest.raises(BundleError, match="larger than a bundle"):
        taken(tmp_path / "a.zip", rezipped(GOOD))


def test_a_bundle_that_would_fill_a_disk_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = bomb()
    monkeypatch.setattr(layout, "UNPACKED_FREE", 1 << 20)
    with pytest.raises(BundleError, match="more than 500 times its size"):
        taken(tmp_path / "a.zip", data)
    assert taken(tmp_path / "a.zip", bundled()).stalls[0] == STALL
    with pytest.raises(BundleError, match="choose fewer"):
        bundled([replace(STALL, title="n" * 16_000_000)])


@pytest.mark.parametrize("kind", ["folder", "nothing there"])
def test_what_is_no_file_is_refused(tmp_path: Path, kind: str) -> None:
    place = tmp_path if kind == "folder" else tmp_path / "none"
    with pytest.raises(BundleError, match=r"not a file|No such file"):
        read_bundle(place, Taken(), now_wall_ns=NOW)


# ---- bytes at random ------------------------------------------------------------------------------

WHOLE = bundled()
PLAIN = rezipped(GOOD, method=zipfile.ZIP_STORED)


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A bundle with a few bytes changed, cut out or put in, packed or not."""
    data = bytearray(draw(st.sampled_from([WHOLE, PLAIN])))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data) - 1) | st.integers(max(0, len(data) - 700), len(data) - 1))
        some = draw(st.binary(max_size=6))
        data[at : at + draw(st.integers(0, 6))] = some
        if not data:
            break
    return bytes(data)


@st.composite
def rewritten(draw: st.DrawFn) -> bytes:
    """A whole zip and manifest with other values in its records."""
    name = draw(st.sampled_from(sorted(set(GOOD) - {"manifest.json"})))
    record = json.loads(GOOD[name].splitlines()[0])
    key = draw(st.sampled_from(sorted(record)))
    scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.just("\ud800")
    record[key] = draw(
        scalars | st.lists(scalars, max_size=2) | st.dictionaries(st.text(max_size=3), scalars, max_size=2)
    )
    return rezipped(retold({**GOOD, name: json.dumps(record).encode() + b"\n"}))


@settings(max_examples=200)
@given(mutated() | rewritten())
def test_whatever_the_bytes_are_it_is_taken_or_refused(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzzed.zip"
    try:
        found = taken(path, data)
    except BundleError:
        return
    assert all(layout.ID.fullmatch(stall.id) for stall in found.stalls)


@settings(max_examples=25)
@given(rewritten())
def test_what_is_taken_can_be_asked_for(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    folder = tmp_path_factory.mktemp("fuzzed")
    path = folder / "a.zip"
    path.write_bytes(data)
    store = Store(folder / "store")
    try:
        store.take_in(lambda intake: read_bundle(path, intake, now_wall_ns=NOW) and None)
    except BundleError:
        return
    try:
        query = IssueQuery()
        assert len(list(store.reader.each(query))) == store.reader.totals(query).issues
        assert len(store.reader.sessions(query)) == len(store.reader.session_marks(query))
        store.reader.groups(query), store.reader.issues(query), store.reader.remarks()
    finally:
        store.close()
