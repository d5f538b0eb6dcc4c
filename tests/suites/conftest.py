from __future__ import annotations

import sys
from pathlib import Path

# Tools are programs of the tree, not a package that is installed.
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
