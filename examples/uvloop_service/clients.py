"""Clients of the order desk, for a few seconds."""

from __future__ import annotations

import json
import random
import socket
import threading

REQUESTS = 60
RARE = {
    10: {"do": "sign in", "name": "ada", "password": "lovelace"},
    25: {"do": "order", "item": "lamp-7", "count": 120},
    40: {"do": "report"},
}


def play(address):
    """Four of them, each with one request under way."""
    threads = [threading.Thread(target=_play_one, args=(address, number)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _play_one(address, number):
    dice = random.Random(number)
    with socket.create_connection(address) as connection, connection.makefile("rw") as stream:
        for step in range(REQUESTS):
            quote = {"do": "quote", "item": f"lamp-{dice.randrange(97)}"}
            request = RARE.get(step - 3 * number, quote)
            stream.write(json.dumps({"id": step, **request}) + "\n")
            stream.flush()
            assert json.loads(stream.readline())["id"] == step
