"""A handler validates a large body by pydantic."""

from __future__ import annotations

import gc

import pydantic
from zoo.stage import measured, run, sized

EXPECT = {
    "cause": ["native-cpu"],
    "needs": ["pydantic"],
    "advice": ["process", "pieces", "to_thread", "bound", "page"],
}


class Order(pydantic.BaseModel):
    sku: str
    price: float
    tags: list[str]


ORDERS = pydantic.TypeAdapter(list[Order])


def body_of(count):
    return b"[" + b",".join([b'{"sku": "4711", "price": 12.75, "tags": ["new", "red"]}'] * count) + b"]"


def parse(body):
    return ORDERS.validate_json(body)  # <- culprit


async def handler():
    with measured():
        parse(BODY)


if __name__ == "__main__":
    gc.disable()  # its collections are a kind of their own
    BODY = body_of(sized(lambda count: parse(body_of(count)), 0.4))
    run(handler)
