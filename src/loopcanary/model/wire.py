"""Values as JSON-able dicts and back: contract 7.3 of the design (docs/internals/report-schema.md).

Fields are added, never renamed. Durations go out as `_ms` floats, times as RFC 3339 in UTC with nine
decimals; both come back to the same nanosecond (durations: up to 2**51 ns, 26 days, where a float still
has a digit to spare). What comes in is not trusted: anything that is not what the contract says raises
WireError, which names the field.
"""

from __future__ import annotations

from loopcanary.model.wire_fields import Json, WireError, time_from_text, time_to_text
from loopcanary.model.wire_issue import issue_from_dict, issue_to_dict
from loopcanary.model.wire_pieces import culprit_to_dict
from loopcanary.model.wire_session import loop_to_dict, session_from_dict, session_to_dict
from loopcanary.model.wire_stall import stall_from_dict, stall_to_dict
from loopcanary.model.wire_traces import traces_from_dict, traces_to_dict

__all__ = [
    "SCHEMA_VERSION",
    "Json",
    "WireError",
    "culprit_to_dict",
    "issue_from_dict",
    "issue_to_dict",
    "loop_to_dict",
    "session_from_dict",
    "session_to_dict",
    "stall_from_dict",
    "stall_to_dict",
    "time_from_text",
    "time_to_text",
    "traces_from_dict",
    "traces_to_dict",
]

SCHEMA_VERSION = 1
