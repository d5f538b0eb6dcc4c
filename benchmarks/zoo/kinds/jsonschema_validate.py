"""A handler checks a large body against a schema, by jsonschema."""

from __future__ import annotations

import jsonschema
from zoo.stage import measured, run, sized

EXPECT = {
    "cause": ["cpu"],
    "needs": ["jsonschema"],
    "advice": ["process", "to_thread", "fastjsonschema", "sleep(0)"],
}
ORDER = {
    "type": "object",
    "required": ["sku"],
    "properties": {"sku": {"type": "string"}, "price": {"type": "number"}},
}
ORDERS = jsonschema.Draft202012Validator({"type": "array", "items": ORDER})


def body_of(count):
    return [{"sku": "4711", "price": 12.75}] * count


def check(body):
    ORDERS.validate(body)  # <- culprit


async def handler():
    with measured():
        check(BODY)


if __name__ == "__main__":
    BODY = body_of(sized(lambda count: check(body_of(count)), 0.4, start=50))
    run(handler)
