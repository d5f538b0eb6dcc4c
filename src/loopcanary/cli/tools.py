"""What pages ask of other parts, brought by the assembly."""

from __future__ import annotations

from collections.abc import Iterator

from loopcanary.assembly.explanations import delays, longer, source_reader, why_grouped
from loopcanary.ui.tools import Tools


def page_tools() -> Tools:
    return Tools(
        read_source=source_reader(),
        why_grouped=why_grouped,
        delays=delays,
        longer=longer,
        doctor=_doctor,
    )


def _doctor() -> Iterator[tuple[str, str, str]]:
    from loopcanary.assembly.doctor import doctor_facts  # most servers never show that page

    return doctor_facts()
