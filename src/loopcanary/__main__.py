"""`python -m loopcanary`: the same as the command `loopcanary`."""

from __future__ import annotations

import sys

from loopcanary.cli import main

if __name__ == "__main__":
    sys.exit(main())
