"""Who takes the stalls of the programs that tests start: a keeper, as by default, or they themselves.

`make test-crowd WITHOUT_KEEPER=1` asks for the latter.
"""

from __future__ import annotations

import os

KEEPER = "0" if os.environ.get("WITHOUT_KEEPER") else "1"
"""The setting `keeper` of those programs."""
