"""Sessions without a flight file: which of them are over."""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from tests.building.stalls import SESSION

from loopcanary.assembly.store import host_name, open_store, recover
from loopcanary.facts import pid_namespace
from loopcanary.model import SessionEnd
from loopcanary.model.search import IssueQuery

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="is about PID namespaces")


@pytest.mark.parametrize(
    ("namespace", "started_wall_ns", "end"),
    [
        pytest.param(pid_namespace(), time.time_ns(), SessionEnd.KILLED, id="of this PID namespace"),
        pytest.param(0, time.time_ns(), SessionEnd.KILLED, id="of an earlier version"),
        pytest.param(1, time.time_ns(), SessionEnd.RUNNING, id="of another PID namespace"),
        pytest.param(1, 0, SessionEnd.KILLED, id="of another one, before this boot"),
    ],
)
def test_a_session_is_over_where_its_number_says_so(
    tmp_path: Path, namespace: int, started_wall_ns: int, end: SessionEnd
) -> None:
    with subprocess.Popen(["true"]) as gone:
        pass
    session = replace(
        SESSION,
        pid=gone.pid,
        host=host_name(),
        end=SessionEnd.RUNNING,
        ended_wall_ns=None,
        started_wall_ns=started_wall_ns,
        pid_namespace=namespace,
    )
    (tmp_path / "flight").mkdir()
    with closing(open_store(tmp_path)) as store:
        store.put_session(session)
        recover(store)
        [found] = store.reader.sessions(IssueQuery())
    assert found.end is end
