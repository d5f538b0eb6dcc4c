"""Functions that are too small to be traced: getters, setters, constants. Their bytecode says so."""

from __future__ import annotations

from opcode import opname
from types import CodeType
from typing import Final

_INSTRUCTIONS_MAX: Final = 12
_SIMPLE: Final = frozenset(
    (
        *("PUSH_NULL", "POP_TOP", "COPY", "SWAP", "COPY_FREE_VARS", "MAKE_CELL", "IS_OP", "TO_BOOL"),
        *("LOAD_CONST", "LOAD_SMALL_INT", "LOAD_COMMON_CONSTANT", "LOAD_GLOBAL", "LOAD_NAME", "LOAD_ATTR"),
        *("LOAD_DEREF", "LOAD_CLOSURE", "STORE_DEREF", "STORE_ATTR", "STORE_GLOBAL", "BUILD_TUPLE"),
        *("RETURN_VALUE", "RETURN_CONST"),
    )
)
"""No call, no operator but `is`: those on constants are constants by now."""
_SIMPLE_KINDS: Final = ("LOAD_FAST", "STORE_FAST", "POP_JUMP_IF_", "POP_JUMP_FORWARD_", "JUMP_FORWARD")
_UNCOUNTED: Final = frozenset(("CACHE", "EXTENDED_ARG", "RESUME", "NOP", "NOT_TAKEN"))


def is_trivial(code: CodeType) -> bool:
    """Whether a call of it takes no time that matters: at most 12 instructions, no backward jump, no call, no
    operator but on constants and `is`."""
    names = [name for number in code.co_code[::2] if (name := opname[number]) not in _UNCOUNTED]
    return len(names) <= _INSTRUCTIONS_MAX and all(
        name in _SIMPLE or name.startswith(_SIMPLE_KINDS) for name in names
    )
