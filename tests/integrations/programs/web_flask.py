"""A Flask application, and one of plain WSGI."""

from __future__ import annotations

import time

from flask import Flask

app = Flask(__name__)


@app.get("/orders/<int:order_id>")
def order(order_id: int) -> str:
    time.sleep(0.8)  # order
    return str(order_id)


@app.get("/quick")
def quick() -> str:
    time.sleep(0.15)  # longer than a loop's threshold, shorter than a request's
    return "quick"


def plain(environ, start_response):
    if environ["PATH_INFO"] != "/quick":
        time.sleep(0.8)  # plain
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"plain"]
