"""The messages of pprof's profile.proto (github.com/google/pprof/blob/main/proto/profile.proto), as far as
they are used here, for the protobuf library. A table in the place of generated code, which works with some
versions of the library only; tests hold it to the published file."""

from __future__ import annotations

from typing import Any

from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

PACKAGE = "perftools.profiles"
# message: field, number, type; `*` repeated
MESSAGES = {
    "Profile": (
        ("sample_type", 1, "*ValueType"),
        ("sample", 2, "*Sample"),
        ("mapping", 3, "*Mapping"),
        ("location", 4, "*Location"),
        ("function", 5, "*Function"),
        ("string_table", 6, "*string"),
        ("time_nanos", 9, "int64"),
        ("duration_nanos", 10, "int64"),
        ("comment", 13, "*int64"),
        ("default_sample_type", 14, "int64"),
    ),
    "ValueType": (("type", 1, "int64"), ("unit", 2, "int64")),
    "Sample": (("location_id", 1, "*uint64"), ("value", 2, "*int64"), ("label", 3, "*Label")),
    "Label": (("key", 1, "int64"), ("str", 2, "int64"), ("num", 3, "int64"), ("num_unit", 4, "int64")),
    "Mapping": (
        ("id", 1, "uint64"),
        ("filename", 5, "int64"),
        ("has_functions", 7, "bool"),
        ("has_filenames", 8, "bool"),
        ("has_line_numbers", 9, "bool"),
    ),
    "Location": (("id", 1, "uint64"), ("mapping_id", 2, "uint64"), ("line", 4, "*Line")),
    "Line": (("function_id", 1, "uint64"), ("line", 2, "int64")),
    "Function": (
        ("id", 1, "uint64"),
        ("name", 2, "int64"),
        ("system_name", 3, "int64"),
        ("filename", 4, "int64"),
    ),
}
_SCALARS = {
    "int64": FieldDescriptorProto.TYPE_INT64,
    "uint64": FieldDescriptorProto.TYPE_UINT64,
    "bool": FieldDescriptorProto.TYPE_BOOL,
    "string": FieldDescriptorProto.TYPE_STRING,
}


def profile_class() -> Any:
    file = FileDescriptorProto(name="profile.proto", package=PACKAGE, syntax="proto3")
    for message, fields in MESSAGES.items():
        added = file.message_type.add(name=message)
        for name, number, kind in fields:
            many, base = kind.startswith("*"), kind.removeprefix("*")
            field = added.field.add(
                name=name,
                number=number,
                label=FieldDescriptorProto.LABEL_REPEATED if many else FieldDescriptorProto.LABEL_OPTIONAL,
            )
            if base in _SCALARS:
                field.type = _SCALARS[base]
            else:
                field.type = FieldDescriptorProto.TYPE_MESSAGE
                field.type_name = f".{PACKAGE}.{base}"
    pool = DescriptorPool()
    pool.Add(file)
    return GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.Profile"))
