from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_what_is_shipped_is_what_was_fetched_with_its_licence(tree: Path):
    checked = subprocess.run(
        [sys.executable, tree / "tools/vendor-ui", "--check"],
        cwd=tree,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (checked.returncode, checked.stderr) == (0, "")


def test_our_own_files_name_no_other_host(tree: Path):
    folder = tree / "src/loopcanary/ui"
    files = [*folder.glob("static/*.js"), *folder.glob("static/*.css"), *folder.glob("templates/**/*.html")]
    assert len(files) > 10
    assert [path.name for path in files if "//" in path.read_text(encoding="utf-8").replace("// ", "")] == []
