"""The ways out by their names."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from loopcanary.model import Config
    from loopcanary.notifications.outlet import Receiver


class UnusableWayError(Exception):
    """A way that was asked for cannot be gone; why, for people."""


def receiver_of(way: str, config: Config) -> Receiver:
    """Of `desktop` or `webhook`. UnusableWayError."""
    if way == "desktop":
        from loopcanary.notifications.desktop import Desktop
        from loopcanary.notifications.desktop_session import obstacle

        problem = obstacle()
        if problem is not None:
            raise UnusableWayError(problem)
        return Desktop()
    from loopcanary.notifications.address import AddressError, read
    from loopcanary.notifications.webhook import Webhook

    try:
        return Webhook(read(os.environ, config.webhook_file)[0])
    except AddressError as error:
        raise UnusableWayError(f"webhook: {error}") from None
