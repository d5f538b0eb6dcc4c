"""A handler asks a name server that does not answer, by dnspython."""

from __future__ import annotations

import socket

import dns.exception
import dns.resolver
from zoo.stage import measured, run

EXPECT = {
    "cause": ["dns", "network-io"],
    "needs": ["dnspython"],
    "advice": ["dns.asyncresolver", "aiodns", "to_thread"],
}


def addresses(resolver):
    try:
        return resolver.resolve("shop.example", "A")  # <- culprit
    except dns.exception.Timeout:
        return []


def resolver_at(port):
    resolver = dns.resolver.Resolver(configure=False)
    resolver.nameservers, resolver.port, resolver.lifetime = ["127.0.0.1"], port, 0.3
    return resolver


async def handler():
    with measured():
        addresses(RESOLVER)


if __name__ == "__main__":
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        RESOLVER = resolver_at(server.getsockname()[1])
        run(handler)
