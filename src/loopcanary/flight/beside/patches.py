"""What is replaced in a program, from the file beside its flight file (native/core/patches/patches.h). Trusts
no byte of it."""

from __future__ import annotations

from typing import Final

MAGIC: Final = b"LCPATCH1"
BYTES_MAX: Final = 16384
LINE_MAX: Final = 512


def patches_in(content: bytes) -> list[tuple[str, str, str]]:
    """State (`+`: in place, `-`: taken back, `!`: another tool has patched over it), kind and name of each;
    nothing where the bytes are those of another file."""
    magic, *lines = content[:BYTES_MAX].partition(b"\0")[0].split(b"\n")
    texts = [line.decode("utf-8", "replace") for line in lines[:-1] if magic == MAGIC and line[:1] in b"+-!"]
    found = [(text[:1], *text[1:].partition(" ")) for text in texts]
    return [(state, kind, what) for state, kind, _, what in found if what]
