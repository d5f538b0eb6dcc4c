"""Desktop notifications by desktop-notifier: D-Bus on Linux, WinRT, the notification centre of macOS."""

from __future__ import annotations

import asyncio
import html
import logging
import sys
from typing import Any

from loopcanary.notifications.notice import Notice
from loopcanary.notifications.outlet import DeliveryError

_WAIT_S = 10.0


class Desktop:
    """Shows notices. Its library's loop runs while something is shown, on the thread that delivers then."""

    name = "desktop"

    def __init__(self) -> None:
        self._runner: asyncio.Runner | None = None
        self._notifier: Any = None

    def deliver(self, notice: Notice) -> None:
        """DeliveryError where nothing can be shown."""
        try:
            import desktop_notifier  # noqa: F401 - what that takes is no part of the bus's time

            self._runner = self._runner or asyncio.Runner()
            self._runner.run(asyncio.wait_for(self._show(notice), _WAIT_S))
        except DeliveryError:
            self._notifier = None  # a bus that went away is connected to anew
            raise
        except Exception as error:  # noqa: BLE001 - the library's, the bus's and the service's own kinds
            self._notifier = None
            raise DeliveryError(
                f"the desktop does not show it ({type(error).__name__})", again=False
            ) from None

    def cut(self) -> None:
        """Does nothing: `deliver` bounds its own wait."""

    def close(self) -> None:
        if self._runner is not None:
            self._runner.close()

    async def _show(self, notice: Notice) -> None:
        from desktop_notifier import DesktopNotifier, Urgency

        if self._notifier is None:
            # It logs, with a traceback, why it could not show one; we only report that it could not.
            logging.getLogger("desktop_notifier").setLevel(logging.CRITICAL)
            self._notifier = DesktopNotifier(app_name="loopcanary", app_icon=None)
        shown: list[bool] = []
        await self._notifier.send(
            title=notice.title,
            message=_body(notice),
            urgency=Urgency.Critical if notice.is_urgent else Urgency.Normal,
            on_dispatched=lambda: shown.append(True),
        )
        if not shown:
            raise DeliveryError(
                "the desktop shows no notifications (is a service for them running?)", again=False
            )


def _body(notice: Notice) -> str:
    """The body is marked up on Linux: https://specifications.freedesktop.org/notification-spec/latest/markup.html"""
    text = "\n".join(notice.lines)
    return html.escape(text, quote=False) if sys.platform.startswith("linux") else text
