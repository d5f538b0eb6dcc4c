"""answers_edge.py: receives datagrams longer than the room for them, behind which there is no memory."""

from __future__ import annotations

import ctypes
import mmap
import socket
import sys

PROT_NONE = 0
DATA = b"GET / HTTP/1.1"


def last_byte_before_nothing():
    """A byte behind which no memory can be read; and what keeps it."""
    memory = mmap.mmap(-1, 2 * mmap.PAGESIZE)
    first = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    behind = ctypes.c_void_p(first + mmap.PAGESIZE)
    if ctypes.CDLL(None).mprotect(behind, ctypes.c_size_t(mmap.PAGESIZE), PROT_NONE) != 0:
        sys.exit("mprotect")
    return memoryview(memory)[mmap.PAGESIZE - 1 : mmap.PAGESIZE]


room = last_byte_before_nothing()
with socket.socket(type=socket.SOCK_DGRAM) as receiving, socket.socket(type=socket.SOCK_DGRAM) as sending:
    receiving.bind(("127.0.0.1", 0))
    for _ in range(2):
        sending.sendto(DATA, receiving.getsockname())
    assert receiving.recv_into(room, 1, socket.MSG_TRUNC) == len(DATA)
    assert receiving.recvmsg_into([room], 0, socket.MSG_TRUNC)[0] == len(DATA)
    assert bytes(room) == DATA[:1]
