"""Names, version and limits of a bundle; docs/bundles.md says what each part holds.

The limits hold for writers too: what one writes, every reader takes.
"""

from __future__ import annotations

import re

FORMAT = "loopcanary-bundle"
VERSION = 1
MANIFEST = "manifest.json"
STALLS, ISSUES, SESSIONS, REMARKS = "stalls", "issues", "sessions", "remarks"
KINDS = (STALLS, ISSUES, REMARKS, SESSIONS)
"""Of records, in the order in which they are read: a session's events say when it was alive."""
MEMBER = re.compile(rf"({'|'.join(KINDS)})-[0-9]{{4}}\.jsonl")

_MIB = 1 << 20
FILE_MAX = 2 * 1024 * _MIB - 1
"""Bytes of the file: within what a zip holds without its 64-bit extension."""
TOTAL_MAX = 8 * 1024 * _MIB
"""Bytes of all members, unpacked."""
MEMBER_MAX = 64 * _MIB
"""Bytes of a member, unpacked, from which on its records go on in the next one."""
LINE_MAX = 32 * _MIB
MEMBER_LIMIT = MEMBER_MAX + LINE_MAX
"""No member is longer: its last line began before MEMBER_MAX."""
MANIFEST_MAX = _MIB
MEMBERS_MAX = 1_000
DIRECTORY_MAX = _MIB
UNPACKED_FREE = 256 * _MIB
RATIO_MAX = 500
"""Unpacked to packed, of bundles that unpack to more than UNPACKED_FREE. Deflate reaches 1,032 with nothing
but zeros; equal stalls, one after the other, 250."""


def is_too_dense(unpacked: int, packed: int) -> bool:
    """Whether members of these sizes are more likely made to fill a disk than to hold stalls."""
    return unpacked > max(UNPACKED_FREE, RATIO_MAX * packed)


def member_name(kind: str, number: int) -> str:
    """`stalls-0001.jsonl`"""
    return f"{kind}-{number:04}.jsonl"


KIND = re.compile(r"(?!.*-quiet)[a-z0-9][a-z0-9-]{0,39}")
"""Names of kinds that nothing here knows."""
ID = re.compile(r"[!-~]{1,200}")
"""Ids and fingerprints: they stand in addresses and on command lines."""
