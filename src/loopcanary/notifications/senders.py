"""What one process sends: its claims on the ways out, an outlet for each, and what it says of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from loopcanary.notifications import standing
from loopcanary.notifications.notice import Notice
from loopcanary.notifications.outlet import Outlet, Receiver


class Senders:
    """The ways out of some stores that no other process uses. One thread."""

    def __init__(self, stores: Sequence[Path], complain: Callable[[str], object]) -> None:
        """`complain`: gets a line of what is wrong; raises nothing."""
        self._stores = stores
        self._complain = complain
        self._claims: list[standing.Claim] = []
        self._outlets: list[Outlet] = []
        self._written: dict[str, dict[str, Any]] = {}

    def claim(self, receivers: Sequence[Receiver]) -> bool:
        """Takes the ways that no other process uses; False if none of those asked for is left."""
        free: list[Receiver] = []
        for receiver in receivers:
            claims = [standing.Claim(store, receiver.name) for store in self._stores]
            if standing.take_all(claims):
                free.append(receiver)
                self._claims += claims
                continue
            self._complain(f"{receiver.name} notifications are sent by another process already")
        for store in self._stores:
            standing.started(store)
        if receivers and not free:
            return False
        self._outlets = [Outlet(receiver) for receiver in free]
        self.write_status(0)  # who sends is known before anything is sent
        return True

    def give_back(self) -> None:
        """Another process may send from here on."""
        for claim in self._claims:
            claim.give_back()

    def take_again(self) -> bool:
        """Whether what was given back is ours again."""
        return standing.take_all(self._claims)

    def send(self, notice: Notice) -> None:
        for outlet in self._outlets:
            outlet.send(notice)

    def write_status(self, withheld: int) -> None:
        """For `loopcanary doctor`, where something has changed."""
        for outlet in self._outlets:
            counts = outlet.counts
            status = {
                "pid": os.getpid(),
                "sent": counts.sent,
                "lost": counts.lost,
                "lost_stalls": counts.lost_stalls,
                "withheld": withheld,
                "problem": counts.problem,
            }
            if self._written.get(outlet.name) == status:
                continue
            self._written[outlet.name] = status
            for store in self._stores:
                standing.write_status(store, outlet.name, status)

    def close(self, patience_s: float) -> None:
        """Delivers what is left, for this time at most by each way."""
        for outlet in self._outlets:
            outlet.close(patience_s)
        self.write_status(0)
