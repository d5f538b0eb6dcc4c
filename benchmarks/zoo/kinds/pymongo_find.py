"""A handler asks for a server of MongoDB, which a thread of pymongo looks for."""

from __future__ import annotations

import pymongo
import pymongo.errors
from zoo.stage import measured, run

EXPECT = {"cause": ["lock"], "needs": ["pymongo"], "advice": ["AsyncMongoClient", "motor", "to_thread"]}


def find_user(client):
    try:
        return client.shop.users.find_one({"name": "ada"})  # <- culprit
    except pymongo.errors.ServerSelectionTimeoutError:
        return None


async def handler():
    with measured():
        find_user(CLIENT)


if __name__ == "__main__":
    CLIENT = pymongo.MongoClient("mongodb://127.0.0.1:9/", serverSelectionTimeoutMS=300)
    run(handler)
    CLIENT.close()
