from __future__ import annotations

import re

# Nested repetition: an address that does not match is tried in every way it can be cut into words.
ADDRESS = re.compile(r"^([a-z0-9]+[._-]?)+@[a-z0-9.-]+$")


def is_valid(address: str) -> bool:
    return ADDRESS.match(address.strip().lower()) is not None
