"""Readings of process, container and machine."""

from __future__ import annotations

from typing import Any, Final

from loopcanary.flight import format as layout
from loopcanary.flight.header import bounded
from loopcanary.model import HostReading

_BITS: Final = {
    "process_cpu_ns": layout.HOST_PROCESS_CPU,
    "process_major_faults": layout.HOST_MAJOR_FAULTS,
    "system_busy_ns": layout.HOST_SYSTEM,
    "system_total_ns": layout.HOST_SYSTEM,
    "system_stolen_ns": layout.HOST_SYSTEM,
    "throttled_ns": layout.HOST_THROTTLED,
    "throttled_periods": layout.HOST_THROTTLED,
    "pressure_cpu_ns": layout.HOST_PRESSURE_CPU,
    "pressure_io_ns": layout.HOST_PRESSURE_IO,
    "pressure_memory_ns": layout.HOST_PRESSURE_MEMORY,
    "memory_available_bytes": layout.HOST_AVAILABLE,
    "memory_used_bytes": layout.HOST_USED,
}


def host_reading(fields: dict[str, Any]) -> HostReading:
    """One entry of a slot's hosts; what the kernel did not give is None."""
    told = fields["told"]
    known = {name: bounded(fields[name]) for name, bit in _BITS.items() if told & bit}
    if told & layout.HOST_PRIORITY:
        known |= {name: fields[name] for name in ("nice", "policy", "cores")}
    return HostReading(at_ns=bounded(fields["at_ns"]), **known)
