"""High scores, kept by a server that has seen better days (here: a thread of this process)."""

from __future__ import annotations

import socket
import threading
import time


def serve(listener):
    connection, _ = listener.accept()
    with connection:
        connection.recv(100)
        time.sleep(0.6)
        connection.sendall(b"1. Ada 9000\n2. Grace 8000\n")


def show(points):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, args=(listener,), name="score server", daemon=True).start()
        with socket.create_connection(listener.getsockname()) as client:
            client.sendall(f"{points}\n".encode())
            table = client.recv(1_000)
    print(table.decode(), end="")
