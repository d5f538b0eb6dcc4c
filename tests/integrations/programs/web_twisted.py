"""A site of twisted.web on the socket that is given, until it is stopped."""

from __future__ import annotations

import sys
import time

from blocking import until_sampled
from twisted.internet import reactor
from twisted.web.resource import Resource
from twisted.web.server import Site


class Orders(Resource):
    isLeaf = True  # noqa: N815 - Twisted's name

    def render_GET(self, request):  # noqa: ARG002, N802 - Twisted's name
        for seconds in until_sampled(0.25):
            time.sleep(seconds)  # render_GET
        return b"orders"

    def render_POST(self, request):  # noqa: ARG002, N802 - Twisted's name
        for seconds in until_sampled(0.25):
            time.sleep(seconds)  # render_POST
        return b"ordered"


class Quick(Resource):
    def render_GET(self, request):  # noqa: ARG002, N802 - Twisted's name
        return b"quick"


root = Resource()
root.putChild(b"orders", Orders())
root.putChild(b"quick", Quick())
reactor.listenUNIX(sys.argv[1], Site(root))
reactor.run()
