"""The bugs that a JSON report names: a baseline."""

from __future__ import annotations

import json


def bugs_named(report: bytes | str) -> dict[str, str]:
    """Titles by fingerprint, of all kinds of issues. ValueError: it is not a report."""
    try:
        document = json.loads(report)
        groups = [*document["groups"], *document["issue_groups"]]
        return {str(group["fingerprint"]): str(group["title"]) for group in groups}
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise ValueError(f"not a report: {error}") from error
