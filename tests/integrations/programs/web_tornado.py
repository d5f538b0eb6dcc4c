"""A Tornado application on the socket that is given, until it is stopped."""

from __future__ import annotations

import asyncio
import signal
import sys
import time

from blocking import until_sampled
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_unix_socket
from tornado.web import Application, RequestHandler


class OrderHandler(RequestHandler):
    async def get(self, order_id):
        await asyncio.sleep(0.001)
        for seconds in until_sampled(0.25):
            time.sleep(seconds)  # noqa: ASYNC251  # get
        self.write(order_id)


class ItemHandler(RequestHandler):
    def post(self, item_id):
        for seconds in until_sampled(0.25):
            time.sleep(seconds)  # post
        self.write(item_id)


class QuickHandler(RequestHandler):
    def get(self):
        self.write("quick")


async def main():
    over = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, over.set)
    rules = [(r"/orders/(\d+)", OrderHandler), (r"/items/(\w+)", ItemHandler), (r"/quick", QuickHandler)]
    server = HTTPServer(Application(rules))
    server.add_socket(bind_unix_socket(sys.argv[1]))
    await over.wait()
    server.stop()


asyncio.run(main())
