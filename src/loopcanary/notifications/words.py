"""What is said in more than one place."""

from __future__ import annotations

NO_LIBRARY = "desktop notifications need desktop-notifier: pip install 'loopcanary[notify]'"
