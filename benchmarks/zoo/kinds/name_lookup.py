"""A handler resolves a name, and the resolver on loopback does not answer."""

from __future__ import annotations

import ctypes
import platform
import socket
import struct

from zoo.stage import measured, run, skip

EXPECT = {"cause": ["dns"]}


class ResolverState(ctypes.Structure):
    """The head of glibc's struct __res_state, which is per thread."""

    _fields_ = (
        ("retrans", ctypes.c_int),
        ("retry", ctypes.c_int),
        ("options", ctypes.c_ulong),
        ("nscount", ctypes.c_int),
        ("servers", ctypes.c_ubyte * 48),
    )


def ask_only(server):
    libc = ctypes.CDLL(None)
    libc.__res_state.restype = ctypes.POINTER(ResolverState)
    libc.__res_init()
    state = libc.__res_state().contents
    state.retrans, state.retry, state.nscount = 1, 1, 1
    host, port = server.getsockname()
    address = struct.pack("=H", socket.AF_INET) + struct.pack("!H", port) + socket.inet_aton(host)
    ctypes.memmove(state.servers, address, len(address))


def find(host):
    try:
        socket.getaddrinfo(host, 80)  # <- culprit
    except socket.gaierror:
        pass


async def handler():
    with measured():
        find("stock.zoo.invalid.")


if __name__ == "__main__":
    if platform.libc_ver()[0] != "glibc":
        skip("the resolver is not glibc's")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        ask_only(silent)
        run(handler)
