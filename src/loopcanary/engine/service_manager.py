"""What a service manager such as systemd wants to hear of this process: sd_watchdog_enabled(3)."""

from __future__ import annotations

import os

TYPE_CHECKING = False  # typing is not loaded for it
if TYPE_CHECKING:
    from collections.abc import Mapping


def feed_wanted(environment: Mapping[str, str]) -> tuple[bytes, int] | None:
    """From this process's environment: the manager's socket, and how often to feed it in ns, twice in
    the time that the manager waits. None: it does not wait for this process. A forked child inherits the
    variables, but not the number in WATCHDOG_PID; without that number nobody knows who is meant."""
    socket = environment.get("NOTIFY_SOCKET", "")
    waits_us = environment.get("WATCHDOG_USEC", "")
    if environment.get("WATCHDOG_PID") != str(os.getpid()) or socket[:1] not in ("/", "@"):
        return None
    if not (waits_us.isascii() and waits_us.isdigit()) or not 0 < len(waits_us) <= 15 or int(waits_us) < 2:
        return None
    return os.fsencode(socket), int(waits_us) * 1000 // 2
