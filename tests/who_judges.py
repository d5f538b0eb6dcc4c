"""Who takes the stalls of the programs that tests start: they themselves, as by default, or a keeper.

`make test-crowd WITH_KEEPER=1` asks for the latter.
"""

from __future__ import annotations

import os

KEEPER = "1" if os.environ.get("WITH_KEEPER") else "0"
"""The setting `keeper` of those programs."""
