"""A notebook awaits a socket in non-blocking mode, and its kernel answers cells."""

from __future__ import annotations

import os
import queue
import socket
import tempfile
import threading
import time

from ipykernel.kernelapp import IPKernelApp
from jupyter_client import BlockingKernelClient

CELL_1 = """
import asyncio, time
late = []
async def heartbeat():
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)
beats = asyncio.create_task(heartbeat())
"""
CELL_2 = """
from asyncio import get_running_loop
from socket import create_connection
loop = get_running_loop()
s = create_connection(("127.0.0.1", PORT))
s.setblocking(False)
message = loop.create_task(loop.sock_recv(s, 999))
"""
CELL_3 = "1 + 1"
CELL_4 = "print(message.result(), f'worst tick {max(late) * 1000:.0f} ms')"


def serve(listener: socket.socket) -> None:
    """Has something to say three seconds after the notebook called."""
    connection, _ = listener.accept()
    time.sleep(3)
    connection.sendall(b"news")


def run_cells(connection_file: str, port: int, printed: queue.Queue[str]) -> None:
    client = BlockingKernelClient(connection_file=connection_file)
    client.load_connection_file()
    client.start_channels()
    client.wait_for_ready(timeout=30)
    for cell in (CELL_1, CELL_2.replace("PORT", str(port)), CELL_3):
        client.execute_interactive(cell, timeout=30)
        time.sleep(0.5)
    time.sleep(3)
    client.execute_interactive(
        CELL_4, timeout=30, output_hook=lambda said: printed.put(said["content"].get("text"))
    )
    client.shutdown()
    client.stop_channels()


if __name__ == "__main__":
    news = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=serve, args=(news,), daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "kernel.json")
        kernel = IPKernelApp.instance(connection_file=path, capture_fd_output=False)
        kernel.initialize([])
        outputs: queue.Queue[str] = queue.Queue()
        notebook = threading.Thread(target=run_cells, args=(path, news.getsockname()[1], outputs))
        notebook.start()
        kernel.start()
        notebook.join()
    while not outputs.empty():
        os.write(1, (outputs.get() or "").encode())
