"""A handler asks a server of Redis that does not answer."""

from __future__ import annotations

import redis
from zoo.servers import silent
from zoo.stage import measured, run

EXPECT = {"cause": ["network-io"], "needs": ["redis"], "advice": ["redis.asyncio"]}


def session_of(store, user):
    try:
        return store.get(user)  # <- culprit
    except redis.ConnectionError:
        return None


async def handler():
    with measured():
        session_of(STORE, "4711")


if __name__ == "__main__":
    with silent() as port:
        STORE = redis.Redis(port=port, retry=None, single_connection_client=False)
        run(handler)
