"""What pages ask of other parts, brought by the assembly."""

from __future__ import annotations

from loopcanary import assembly
from loopcanary.ui.tools import Tools


def page_tools() -> Tools:
    """The tools of all pages."""
    return Tools(
        read_source=assembly.source_reader(),
        why_grouped=assembly.why_grouped,
        delays=assembly.delays,
        doctor=assembly.doctor_facts,
    )
