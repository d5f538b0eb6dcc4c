"""How tools/suite_places.py runs the processes of a suite."""

from __future__ import annotations

import signal
import sys

from suite_places import Place, Side, Suite


def test_a_file_of_tests_that_hangs_is_killed(tmp_path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "hangs.py").write_text("import os; os.read(os.pipe()[0], 1)")
    python = tmp_path / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    side = Side(watched=False)
    suite = Suite(name="of two", tests=["hangs", "hangs"], pythons=[], limit_s=0.1)
    assert Place(suite, tmp_path).whole(side) == {}
    assert side.statuses == [-signal.SIGKILL] * 2
