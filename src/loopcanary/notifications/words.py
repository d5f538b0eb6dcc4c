"""What is said in more than one place."""

from __future__ import annotations

VARIABLE = "LOOPCANARY_WEBHOOK_URL"
NO_ADDRESS = f"no address is set: put it into {VARIABLE}, or into a file and its path into webhook_file"
NO_LIBRARY = "desktop notifications need desktop-notifier: pip install 'loopcanary[notify]'"
