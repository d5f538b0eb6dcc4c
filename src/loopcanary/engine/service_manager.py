"""What a service manager such as systemd wants to hear of this process: sd_watchdog_enabled(3)."""

from __future__ import annotations

import os

TYPE_CHECKING = False  # typing is not loaded for it
if TYPE_CHECKING:
    from collections.abc import Mapping

    from loopcanary.model.config import Config


def feed_of(config: Config) -> tuple[bytes, int] | None:
    """As feed_wanted, of this process's environment; None also where the settings do not ask for it."""
    return feed_wanted(os.environ) if config.sd_watchdog else None


def feed_wanted(environment: Mapping[str, str]) -> tuple[bytes, int] | None:
    """The manager's socket, and how often to say that this process lives, in ns: twice in the time that it
    waits. None: it does not wait for this one. A forked child inherits the variables, but not the number in
    WATCHDOG_PID; without that number nobody knows who is meant."""
    socket = environment.get("NOTIFY_SOCKET", "")
    waits_us = environment.get("WATCHDOG_USEC", "")
    if environment.get("WATCHDOG_PID") != str(os.getpid()) or socket[:1] not in ("/", "@"):
        return None
    if not (waits_us.isascii() and waits_us.isdigit()) or not 0 < len(waits_us) <= 15 or int(waits_us) < 2:
        return None
    return os.fsencode(socket), int(waits_us) * 1000 // 2
