"""Blocks a reactor of Twisted's own under the portable engine."""

from __future__ import annotations

from twisted.internet import reactor
from waiting import blocks


class App:
    def poll(self):
        blocks()
        reactor.callLater(0.15, reactor.stop)


reactor.callLater(0.15, App().poll)
reactor.run()
