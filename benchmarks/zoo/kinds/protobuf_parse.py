"""A handler parses a large message of Protocol Buffers."""

from __future__ import annotations

from google.protobuf.struct_pb2 import ListValue, Value
from zoo.stage import measured, run, sized

EXPECT = {
    "cause": ["native-cpu"],
    "needs": ["protobuf"],
    "advice": ["process", "pieces", "to_thread", "page", "bound"],
}


def message_of(count):
    return (
        ListValue(values=[Value(string_value="4711"), Value(number_value=12.75)]).SerializeToString() * count
    )


def parse(message):
    return len(ListValue.FromString(message).values)  # <- culprit


async def handler():
    with measured():
        parse(MESSAGE)


if __name__ == "__main__":
    MESSAGE = message_of(sized(lambda count: parse(message_of(count)), 0.35, start=20_000))
    run(handler)
