"""What the store raises."""

from __future__ import annotations


class StoreError(Exception):
    """The store could not do what it was asked for.

    The message is one line: what happened, where, and what to do. The only exception that leaves this
    package on purpose.
    """
