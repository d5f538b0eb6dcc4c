"""serve_wsgi.py SERVER MODULE:APPLICATION SOCKET: a WSGI application on one of the plain servers."""

from __future__ import annotations

import signal
import socketserver
import sys
from importlib import import_module


def with_wsgiref(app, path):
    from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

    class Server(socketserver.ThreadingMixIn, WSGIServer):
        address_family = socketserver.socket.AF_UNIX
        daemon_threads = True

        def server_bind(self):
            socketserver.TCPServer.server_bind(self)
            self.server_name, self.server_port = "test", 80
            self.setup_environ()

        def get_request(self):
            connection, _ = super().get_request()
            return connection, ("test", 0)

    server = Server(path, WSGIRequestHandler)
    server.set_app(app)
    server.serve_forever()


def with_werkzeug(app, path):
    from werkzeug.serving import make_server

    make_server(f"unix://{path}", 0, app, threaded=True).serve_forever()


def with_waitress(app, path):
    import waitress

    waitress.serve(app, unix_socket=path, threads=4)


def with_cheroot(app, path):
    from cheroot.wsgi import Server

    server = Server(path, app)
    try:
        server.start()
    finally:
        server.stop()


signal.signal(signal.SIGTERM, lambda *_: sys.exit())
module, _, name = sys.argv[2].partition(":")
globals()[f"with_{sys.argv[1]}"](getattr(import_module(module), name), sys.argv[3])
