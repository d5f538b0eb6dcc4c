"""One file a cause; RULES is the order in which they are asked.

Narrow evidence goes first: a name lookup sleeps in `poll` and would pass as network I/O, so `dns` is
asked before. What is done while a module is imported is the import's matter, since the way out is the same
whatever it is. To add a rule, write its file and put it where nothing before it explains its samples.
"""

from __future__ import annotations

from loopcanary.diagnosis.cause import Rule
from loopcanary.diagnosis.causes.burst import find_burst
from loopcanary.diagnosis.causes.child import find_child
from loopcanary.diagnosis.causes.compute import find_compute
from loopcanary.diagnosis.causes.disk import find_disk
from loopcanary.diagnosis.causes.dns import find_dns
from loopcanary.diagnosis.causes.garbage import find_garbage
from loopcanary.diagnosis.causes.gil import find_gil
from loopcanary.diagnosis.causes.host import find_host
from loopcanary.diagnosis.causes.imports import find_imports
from loopcanary.diagnosis.causes.lock import find_lock
from loopcanary.diagnosis.causes.native import find_native
from loopcanary.diagnosis.causes.network import find_network
from loopcanary.diagnosis.causes.sleep import find_sleep
from loopcanary.diagnosis.causes.terminal import find_terminal
from loopcanary.diagnosis.causes.unknown import find_unknown

RULES: tuple[Rule, ...] = (
    find_host,
    find_garbage,
    find_burst,
    find_gil,
    find_imports,
    find_dns,
    find_terminal,
    find_child,
    find_sleep,
    find_lock,
    find_network,
    find_disk,
    find_native,
    find_compute,
    find_unknown,
)
