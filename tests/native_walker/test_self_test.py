"""A build of CPython that is laid out otherwise than its version's headers say is refused."""

from __future__ import annotations

from types import ModuleType

import pytest


def test_this_interpreter_is_as_its_version_says(probe: ModuleType) -> None:
    assert probe.self_test("", 0) is None


@pytest.mark.parametrize(
    ("fact", "shift"),
    [
        ("function_qualname", 8),
        ("method_function", 8),
        ("cfunction_def", 8),
        ("cfunction_self", 8),
        ("generator_qualname", 8),
        ("type_shared_keys", 8),
        ("values_first", 8),
        ("frame_bytes", 8),
        ("code_exceptions", 8),
        ("code_locals", -4),  # behind it is a number that is mostly the same
        ("code_stack_size", 8),
    ],
)
def test_what_lies_elsewhere_is_noticed(probe: ModuleType, fact: str, shift: int) -> None:
    assert probe.self_test(fact, shift).startswith("functions or the values of frames")
