"""doctor's rows about what the process may ask the kernel, and what the latest run had to go without."""

from __future__ import annotations

import time

import pytest
from tests.building.stalls import session

from loopcanary.assembly.doctor import rights
from loopcanary.assembly.doctor.rights import rights_facts
from loopcanary.engine import allowed_descriptors
from loopcanary.model import Config
from loopcanary.store import Store


@pytest.fixture
def rows(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.platform", "linux")

    def found(store=tmp_path / "none"):
        return {name: (status, words) for name, status, words in rights_facts(Config(store=store))}

    return found


class Unreadable:
    """As /proc/self/syscall is in a process that is not dumpable."""

    def read_bytes(self):
        raise PermissionError(13, "Permission denied")

    def stat(self):
        return type("Facts", (), {"st_uid": -1})


def test_what_threads_wait_in_may_be_read_or_not(rows, monkeypatch, tmp_path):
    (tmp_path / "call").touch()
    monkeypatch.setattr(rights, "_CALL", tmp_path / "call")
    assert rows()["waits"] == ("ok", "the kernel shows what system call a thread waits in")
    monkeypatch.setattr(rights, "_CALL", tmp_path / "nothing")
    assert rows()["waits"][0] == "off"
    monkeypatch.setattr(rights, "_CALL", Unreadable())
    status, words = rows()["waits"]
    assert status == "off"
    assert words.endswith("causes are less certain: this process is not dumpable (setuid, setcap)")


@pytest.mark.parametrize(("allowed", "status"), [(31, "problem"), (32, "off"), (255, "off")])
def test_few_descriptors_are_named(rows, monkeypatch, allowed, status):
    monkeypatch.setattr(rights, "allowed_descriptors", lambda: allowed)
    assert rows()["descriptors"][0] == status


def test_enough_descriptors_are_no_row(rows, monkeypatch):
    assert allowed_descriptors() > 0
    monkeypatch.setattr(rights, "allowed_descriptors", lambda: 256)
    assert "descriptors" not in rows()


@pytest.mark.parametrize(("spare", "status"), [(0, "problem"), (1, None)])
def test_little_address_space_is_named(rows, monkeypatch, spare, status):
    monkeypatch.setattr(rights, "spare_address_space", lambda: spare)
    assert rows().get("address space", (None,))[0] == status


def test_what_the_latest_run_lost_is_named(rows, tmp_path):
    store = Store(tmp_path / "store")
    store.put([session(started_wall_ns=time.time_ns(), statistics={"calls_refused": 2})], [])
    store.close()
    status, words = rows(store=tmp_path / "store")["latest run"]
    assert status == "off"
    assert words.startswith("shop (pid 41): what 2 threads waited in could not be read: ")
