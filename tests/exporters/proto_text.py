"""Message classes from the text of a .proto file, as far as profile.proto goes: no compiler needed."""

from __future__ import annotations

import re
from typing import Any

from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

_MESSAGE = re.compile(r"message (\w+) \{(.*?)\n\}", re.DOTALL)
_FIELD = re.compile(r"^\s*(repeated )?(\w+) (\w+) = (\d+);", re.MULTILINE)


def fields_of(text: str) -> dict[str, dict[str, tuple[int, str]]]:
    """{message: {field: (number, type, with `*` where it is repeated)}}"""
    text = re.sub(r"//[^\n]*", "", text)
    return {
        name: {
            field: (int(number), ("*" if repeated else "") + kind)
            for repeated, kind, field, number in _FIELD.findall(body)
        }
        for name, body in _MESSAGE.findall(text)
    }


def message_class(text: str, name: str) -> Any:
    package = re.search(r"^package ([\w.]+);", text, re.MULTILINE)
    assert package is not None
    file = FileDescriptorProto(name="published.proto", package=package[1], syntax="proto3")
    for message, fields in fields_of(text).items():
        added = file.message_type.add(name=message)
        for field, (number, kind) in fields.items():
            made = added.field.add(name=field, number=number)
            many, base = kind.startswith("*"), kind.removeprefix("*")
            made.label = FieldDescriptorProto.LABEL_REPEATED if many else FieldDescriptorProto.LABEL_OPTIONAL
            scalar = getattr(FieldDescriptorProto, f"TYPE_{base.upper()}", None)
            if scalar is None:
                made.type, made.type_name = FieldDescriptorProto.TYPE_MESSAGE, f".{package[1]}.{base}"
            else:
                made.type = scalar
    pool = DescriptorPool()
    pool.Add(file)
    return GetMessageClass(pool.FindMessageTypeByName(f"{package[1]}.{name}"))
