"""`loopcanary notify`, as far as it needs no stall."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.notifications.receiving import Receiver, answer, receiver

from loopcanary.assembly import doctor
from loopcanary.cli import main
from loopcanary.model import Config

SECRET = "very-secret"


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    for name in ("NOTIFY", "NOTIFY_FROM", "WEBHOOK_FILE", "STORE"):
        monkeypatch.delenv(f"LOOPCANARY_{name}", raising=False)
    with receiver(f"/{SECRET}") as made:
        monkeypatch.setenv("LOOPCANARY_WEBHOOK_URL", made.url)
        yield made


def refused(capsys: pytest.CaptureFixture[str], *words: str, status: int = 2) -> str:
    assert main(["notify", *words]) == status
    out, err = capsys.readouterr()
    assert out == ""
    (line,) = err.splitlines()
    return line


def test_an_address_on_a_command_line_is_refused(there: Receiver, capsys):
    line = refused(capsys, "--webhook", there.url)
    assert SECRET not in line
    assert "LOOPCANARY_WEBHOOK_URL" in line


def test_no_address_no_store_and_no_way_are_one_line_each(
    there: Receiver, capsys, monkeypatch, tmp_path: Path
):
    assert "there is no store" in refused(capsys, "--bell", str(tmp_path / "none"), status=1)
    assert "nothing to test" in refused(capsys, "--test")
    assert "'soon' is no duration" in refused(capsys, "--webhook", "--from", "soon")
    monkeypatch.delenv("LOOPCANARY_WEBHOOK_URL")
    line = refused(capsys, "--webhook", "--webhook-file", str(tmp_path / "none"))
    assert "cannot be read: No such file" in line
    assert "no address is set" in refused(capsys, "--webhook")


def test_the_doctor_knows_why_a_follower_fails(there: Receiver, capsys, monkeypatch, tmp_path: Path):
    monkeypatch.delenv("LOOPCANARY_WEBHOOK_URL")
    beside = ("--store", str(tmp_path), "--beside", str(os.getpid()), "--since", "0")
    line = refused(capsys, *beside, "--webhook", "--webhook-file", str(tmp_path / "none"))
    # Asked for by an option of the program's: the settings do not name it.
    ((way, state, detail),) = doctor._telling(Config(store=tmp_path))
    assert (way, state) == ("webhook", "problem")
    assert line == f"loopcanary: {detail.removeprefix('0 sent: ')}"
    assert "cannot be read" in line


def test_a_test_is_sent_and_says_whether_it_arrived(there: Receiver, capsys, monkeypatch, tmp_path: Path):
    assert main(["notify", "--test", "--webhook"]) == 0
    assert capsys.readouterr().out == "webhook: sent\n"
    assert there.next()["text"].startswith("`loopcanary: a test`")
    there.answers.put(answer(403))
    assert main(["notify", "--test", "--webhook"]) == 1
    assert capsys.readouterr().out == "webhook: the receiver answers HTTP 403\n"
    (tmp_path / "hook").write_text(there.url)
    monkeypatch.delenv("LOOPCANARY_WEBHOOK_URL")
    assert main(["notify", "--test", "--webhook", "--webhook-file", str(tmp_path / "hook")]) == 0


def test_ways_that_settings_name_are_those_where_none_is_named(there: Receiver, capsys, monkeypatch):
    monkeypatch.setenv("LOOPCANARY_NOTIFY", "webhook")
    assert main(["notify", "--test"]) == 0
    assert capsys.readouterr().out == "webhook: sent\n"
