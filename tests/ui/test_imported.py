"""What came in a bundle is shown as what was watched here, and where it came from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("starlette")

from tests.building.stalls import BEGAN, CULPRIT, SESSION, STALL
from tests.bundles.samples import NOW, bundled
from tests.ui.conftest import TOOLS, client_of, let_in

from loopcanary.bundles.reading import read_bundle
from loopcanary.bundles.redaction import Redactor
from loopcanary.model import SessionEnd
from loopcanary.source_text import SourceLines
from loopcanary.store import Store


@pytest.mark.parametrize("redacted", [(), ("all",)], ids=["whole", "redacted"])
def test_every_page_shows_what_was_imported(store: Store, tmp_path: Path, redacted: tuple[str, ...]) -> None:
    running = replace(SESSION, end=SessionEnd.RUNNING, ended_wall_ns=None)
    path = tmp_path / "from-the-shop.zip"
    path.write_bytes(bundled(sessions=[running], redactor=Redactor(redacted, b"0123456789abcdef")))
    store.take_in(lambda intake: read_bundle(path, intake, now_wall_ns=NOW) and None)
    client = let_in(client_of(store))
    stall = store.reader.issue(STALL.id)
    assert stall is not None
    for address, params in (
        ("/", {}),
        ("/groups", {}),
        ("/sessions", {}),
        ("/group", {"f": stall.fingerprint}),
        ("/issue", {"id": STALL.id}),
        ("/groups?kind=other", {}),
    ):
        assert client.get(address, params=params).status_code == 200, address
    page = client.get("/session", params={"id": SESSION.id}).text
    assert "from-the-shop.zip" in page
    assert '<span class="tag running">' not in page


@pytest.mark.parametrize("imported", [True, False])
def test_a_bundle_cannot_show_a_local_file(store: Store, tmp_path: Path, imported: bool) -> None:
    """Who made the bundle knows the first line of many a key; who is sent the page learns the second."""
    lines = [""] * CULPRIT.line
    lines[CULPRIT.line - 1] = CULPRIT.source or ""
    text = SourceLines(lines=(*lines, "the-secret"), modified_wall_ns=BEGAN - 1)
    if imported:
        path = tmp_path / "from-a-stranger.zip"
        path.write_bytes(bundled(sessions=[replace(SESSION, started_wall_ns=BEGAN)]))
        store.take_in(lambda intake: read_bundle(path, intake, now_wall_ns=NOW) and None)
    else:
        store.put([replace(SESSION, started_wall_ns=BEGAN)], [STALL])
    client = let_in(client_of(store, tools=replace(TOOLS, read_source=lambda _: text)))
    for address, params in (
        ("/", {}),
        ("/group", {"f": STALL.fingerprint}),
        ("/issue", {"id": STALL.id}),
    ):
        page = client.get(address, params=params).text
        assert ("the-secret" in page) is not imported, address
