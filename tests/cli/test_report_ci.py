"""`loopcanary report` for CI: formats, a baseline of known bugs, the exit status."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from tests.building.stalls import CULPRIT, KILLED, SESSION, STALL, stall
from tests.bundles.samples import bundled

from loopcanary.cli import main
from loopcanary.model import Cause
from loopcanary.store import Retention, Store

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")

Captured = pytest.CaptureFixture[str]
NEW = stall(
    id="s1-7",
    fingerprint="1:beef",
    title="time.sleep(1) in pay (pay.py:3)",
    culprit=replace(CULPRIT, file="/srv/shop/pay.py"),
)


def make(folder: Path, *stalls: object) -> Path:
    store = Store(folder, retention=Retention(age_ns=1 << 62))
    store.put([SESSION], list(stalls))  # type: ignore[arg-type]
    store.close()
    return folder


@pytest.fixture
def old(place: Path) -> Path:
    """A store with the bugs that are known; that of the current folder has one more."""
    make(place / ".loopcanary", STALL, NEW, KILLED)
    return make(place / "old", STALL, replace(KILLED, id="s1-8"))


def refused(capsys: Captured) -> str:
    [line] = capsys.readouterr().err.splitlines()
    return line


@pytest.mark.parametrize("form", ["github", "sarif", "junit"])
def test_a_ci_format_is_written_to_a_file(old: Path, place: Path, capsys: Captured, form: str) -> None:
    assert main(["report", "--format", form, "-o", "found"]) == 0
    assert (place / "found").read_text()
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("form", ["text", "json", "github", "sarif", "html"])
def test_new_bugs_can_be_a_failure(old: Path, capsys: Captured, form: str) -> None:
    arguments = ["report", "--baseline", str(old), "--format", form]
    assert main(arguments) == 0
    assert capsys.readouterr().err == ""
    assert main([*arguments, "--fail-on-new"]) == 70
    assert refused(capsys) == "loopcanary: 1 new bug, the worst: time.sleep(1) in pay (pay.py:3) (1:beef)"


def test_known_bugs_are_no_failure(old: Path, place: Path, capsys: Captured) -> None:
    assert main(["report", "--baseline", str(place / ".loopcanary"), "--fail-on-new"]) == 0
    assert capsys.readouterr().err == ""


def test_the_limit_of_what_is_shown_hides_no_new_bug(old: Path, capsys: Captured) -> None:
    assert main(["report", "--baseline", str(old), "--fail-on-new", "--limit", "1"]) == 70


def test_only_what_was_asked_for_is_judged(old: Path) -> None:
    assert (
        main(
            [
                "report",
                "--baseline",
                str(old),
                "--fail-on-new",
                "--text",
                "orders.py",
                "--cause",
                "native-cpu",
            ]
        )
        == 0
    )


def test_a_baseline_is_a_bundle_or_a_report_or_known_to_git(old: Path, place: Path, capsys: Captured) -> None:
    assert main(["report", str(old), "--format", "json", "-o", "known.json"]) == 0
    (place / "known.zip").write_bytes(bundled())
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(place)]
    for words in (["init", "-q", "-b", "main"], ["add", "known.json"], ["commit", "-qm", "known"]):
        subprocess.run([*git, *words], check=True)
    for baseline in ("known.json", "known.zip", "main:known.json"):
        assert (
            main(
                [
                    "report",
                    "--baseline",
                    baseline,
                    "--fail-on-new",
                    "--text",
                    "orders.py",
                    "--cause",
                    "native-cpu",
                ]
            )
            == 0
        )
        assert main(["report", "--baseline", baseline, "--fail-on-new"]) == 70
        capsys.readouterr()


@pytest.mark.parametrize(
    ("named", "words"),
    [
        ("nowhere", "there is no baseline nowhere: name a store, a bundle"),
        ("empty", "the baseline empty is not a store"),
        ("notes.txt", "the baseline notes.txt is not a report: make one with"),
        ("main:known.json", "git has no baseline main:known.json: "),
    ],
)
def test_a_baseline_that_is_none_is_named(
    old: Path, place: Path, capsys: Captured, named: str, words: str
) -> None:
    (place / "empty").mkdir()
    (place / "empty" / "app.py").touch()
    (place / "notes.txt").write_text("[1]")
    assert main(["report", "--baseline", named]) == 2
    assert words in refused(capsys)


def test_what_the_host_did_is_no_new_bug(old: Path, place: Path) -> None:
    make(place / ".loopcanary", replace(NEW, id="s1-10", fingerprint="1:host", cause=Cause.HOST))
    known = ["report", "--baseline", str(old), "--fail-on-new", "--cause"]
    assert main([*known, "host"]) == 0
    assert main([*known, NEW.cause.value]) == 70


def test_fail_on_new_needs_a_baseline(old: Path, capsys: Captured) -> None:
    assert main(["report", "--fail-on-new"]) == 2
    assert "--baseline" in refused(capsys)
