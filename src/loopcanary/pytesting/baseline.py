"""Files of known bugs: what `loopcanary report --format json` writes, as far as it names bugs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from loopcanary.wire.known import bugs_named

if TYPE_CHECKING:
    from collections.abc import Iterable

    from loopcanary.pytesting.tally import Tallied


def read_known(path: Path) -> dict[str, str]:
    """Titles by fingerprint. ValueError: there is no such file, or it is none."""
    try:
        return bugs_named(path.read_bytes())
    except OSError as error:
        words = f"cannot be read ({error.strerror}): --loopcanary-write-baseline makes one"
        raise ValueError(f"the baseline {path} {words}") from error
    except ValueError as error:
        raise ValueError(f"the baseline {path} is {error}") from error


def write_known(path: Path, found: Iterable[Tallied]) -> None:
    """OSError where it cannot be written."""
    groups = [{"fingerprint": one.fingerprint, "title": one.title} for one in found]
    groups.sort(key=lambda group: (group["title"], group["fingerprint"]))
    text = json.dumps({"schema": 1, "groups": groups, "issue_groups": []}, indent=1)
    path.write_text(text + "\n", encoding="utf-8")
