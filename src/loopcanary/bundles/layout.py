"""Names, version and limits of a bundle; docs/how-to/bundles.md says what each part holds.

The limits hold for writers too: what one writes, every reader takes.
"""

from __future__ import annotations

import re

FORMAT = "loopcanary-bundle"
VERSION = 1
MANIFEST = "manifest.json"
STALLS, ISSUES, SESSIONS, REMARKS = "stalls", "issues", "sessions", "remarks"
KINDS = (STALLS, ISSUES, REMARKS, SESSIONS)
"""Kinds of records, in the order of reading: a session's events say when it was alive."""
MEMBER = re.compile(rf"({'|'.join(KINDS)})-[0-9]{{4}}\.jsonl")

_MIB = 1 << 20
FILE_MAX = 2 * 1024 * _MIB - 1
"""Bytes of the file: a zip without its 64-bit extension holds as many."""
TOTAL_MAX = 8 * 1024 * _MIB
"""Unpacked bytes of all members."""
MEMBER_MAX = 64 * _MIB
"""Unpacked bytes of a member; further records go into the next one."""
LINE_MAX = 32 * _MIB
MEMBER_LIMIT = MEMBER_MAX + LINE_MAX
"""The last line of a member begins before MEMBER_MAX."""
MANIFEST_MAX = _MIB
MEMBERS_MAX = 1_000
DIRECTORY_MAX = _MIB
UNPACKED_FREE = 256 * _MIB
RATIO_MAX = 500
"""Unpacked to packed size of bundles that unpack to more than UNPACKED_FREE. Deflate reaches 1,032 for
zeros; equal stalls, one after the other, reach 250."""


def is_too_dense(unpacked: int, packed: int) -> bool:
    """Whether members of these sizes are likely made to fill a disk."""
    return unpacked > max(UNPACKED_FREE, RATIO_MAX * packed)


def member_name(kind: str, number: int) -> str:
    """`stalls-0001.jsonl`"""
    return f"{kind}-{number:04}.jsonl"


KIND = re.compile(r"(?!.*-quiet)[a-z0-9][a-z0-9-]{0,39}")
"""Names of unknown kinds."""
ID = re.compile(r"[!-~]{1,200}")
"""Ids and fingerprints, which occur in addresses and on command lines."""


CLASSES = ("paths", "names", "source", "args", "hosts", "fingerprints")
ALL = "all"


class BundleError(Exception):
    """A file cannot be taken as a bundle, or become one. One line says what is wrong, and where."""
