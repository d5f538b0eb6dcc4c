from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from tests.building.issues import ISSUES, TRACES
from tests.building.stalls import KILLED, SESSION, STALL, stall

from loopcanary.model import Stall
from loopcanary.store import Retention, Store, StoreError
from loopcanary.ui.app import Site
from loopcanary.ui.live import Sight, Watch
from loopcanary.ui.rendering import Renderer
from loopcanary.ui.serving import guarded
from loopcanary.ui.tools import SourceText, Tools

TOKEN = "a-token-of-forty-three-characters-1234567890"
PORT = 8765
HOST = f"127.0.0.1:{PORT}"


def nothing_to_read(file: str) -> SourceText | None:
    del file
    return None


TOOLS = Tools(
    read_source=nothing_to_read,
    why_grouped=lambda issue, stalls: (
        (f"blocker={issue.fingerprint}",)
        if isinstance(issue, Stall)
        else (f"kind={issue.kind.value}", f"stalls={len(stalls)}")
    ),
    delays=lambda _: lambda _: None,
    longer=lambda _, times: [0.5 if time < 50_000_000 else 0.0 for time in times],
    doctor=lambda: [("engine", "ok", "native"), ("store", "problem", "</script>")],
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path / "store", retention=Retention(age_ns=1 << 62))
    yield made
    made.close()


@pytest.fixture
def filled(store: Store) -> Store:
    """Two bugs, four stalls, one session, and one issue of each kind."""
    longer = stall(id="s1-3", duration_ns=900_000_000, scene="checkout")
    store.put([SESSION], [STALL, KILLED, longer])
    store.put_traces(SESSION.id, TRACES)
    for issue in ISSUES:
        store.put_issue(issue)
    return store


RENDERER = Renderer(folder="/srv", editor="vscode")
_open = ExitStack()


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    """Ends the threads of all clients of a test."""
    yield
    _open.close()


def site_of(
    *stores: Store, sight: Sight | None = None, tools: Tools = TOOLS, watch: Watch | None = None
) -> Site:
    """Pages of these stores."""
    return Site(
        watch=watch or Watch(stores, lambda _: sight or Sight(), (StoreError,)),
        tools=tools,
        renderer=RENDERER,
        errors=(StoreError,),
        is_over=lambda: False,
    )


def client_of(
    *stores: Store,
    sight: Sight | None = None,
    tools: Tools = TOOLS,
    once: str = "",
    watch: Watch | None = None,
) -> TestClient:
    """A browser that has not shown the token yet."""
    site = site_of(*stores, sight=sight, tools=tools, watch=watch)
    made = TestClient(
        guarded(site, token=TOKEN, port=PORT, once=once), base_url=f"http://{HOST}", follow_redirects=False
    )
    return _open.enter_context(made)


def let_in(client: TestClient) -> TestClient:
    """The same, after the address that was printed was opened."""
    assert client.get("/", params={"token": TOKEN}).status_code == 303
    return client


@pytest.fixture
def client(filled: Store) -> TestClient:
    return let_in(client_of(filled))
