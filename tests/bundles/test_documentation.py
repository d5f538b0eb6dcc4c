"""docs/how-to/bundles.md says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

from loopcanary.bundles import layout
from loopcanary.bundles.layout import ALL, CLASSES
from loopcanary.cli import sending


def words_of(page: Path) -> str:
    return " ".join(page.read_text("utf-8").split())


def test_each_class_of_redaction_has_its_row(tree: Path) -> None:
    text = (tree / "docs/how-to/bundles.md").read_text("utf-8")
    table = text.partition("## What `--redact` replaces")[2].partition("Free text")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == [
        "paths",
        "names",
        "hosts",
        "source",
        "args",
        "fingerprints",
    ]
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == set(CLASSES)
    assert f"--redact {ALL}" in table


def test_the_limits_are_those_of_the_code(tree: Path) -> None:
    page = words_of(tree / "docs/how-to/bundles.md")
    gib, mib = 1 << 30, 1 << 20
    assert (2 * gib, 8 * gib) == (layout.FILE_MAX + 1, layout.TOTAL_MAX)
    assert "at most 2 GiB, unpacked at most 8 GiB, 96 MiB a member, 32 MiB a record" in page
    assert (96 * mib, 32 * mib, 64 * mib) == (layout.MEMBER_LIMIT, layout.LINE_MAX, layout.MEMBER_MAX)
    assert f"at most {layout.MEMBERS_MAX:,} members" in page
    assert f"{layout.RATIO_MAX} times its packed size" in page
    assert "beyond 256 MiB" in page
    assert 256 * mib == layout.UNPACKED_FREE
    assert "Members begin anew at 64 MiB" in page


def test_attempts_and_waits_are_those_of_the_code(tree: Path) -> None:
    page = words_of(tree / "docs/how-to/bundles.md")
    assert f"up to {sending.ATTEMPTS} attempts" in page
    assert f"after 1, 2, 4 ... {sending.LONGEST_S:.0f} s" in page
    assert f"more than {sending.PATIENCE_S / 60:.0f} minutes" in page
    assert sending.TOKEN_VARIABLE in page
