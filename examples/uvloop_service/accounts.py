"""Who may order."""

from __future__ import annotations

import hashlib

ROUNDS = 300_000
SALT = b"order desk"
_KNOWN = {"ada": hashlib.pbkdf2_hmac("sha256", b"lovelace", SALT, ROUNDS)}


def is_right(name, password):
    """Slow by design, so that nobody guesses: which belongs on a thread, and is not."""
    return hashlib.pbkdf2_hmac("sha256", password.encode(), SALT, ROUNDS) == _KNOWN.get(name)
