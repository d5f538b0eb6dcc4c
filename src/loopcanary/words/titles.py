"""What a stall is called: one line that says what happened where."""

from __future__ import annotations

from collections.abc import Mapping

TITLES: Mapping[str, str] = {
    "what": "{what}{place: }",
    "what-in": "{what} in {work}",
    "place": "in {function} ({file}:{line})",
    "loop-of": "the loop of {thread}",
    "callback-of": "a callback of {thread}",
    # By cause, where no call is known.
    "cpu": "Python code computing",
    "native-cpu": "a C call computing",
    "gil": "waiting for the GIL",
    "sleep": "sleeping",
    "lock": "waiting for a lock",
    "disk-io": "disk I/O",
    "network-io": "network I/O",
    "dns": "resolving a name",
    "subprocess": "waiting for a child process",
    "gc": "garbage collection",
    "import": "importing modules",
    "burst": "many callbacks in one turn",
    "host": "runnable, but given no CPU by the host",
    "crash": "crashed",
    "unknown": "blocked",
    # What says more than the cause.
    "crashed": "crashed: {signal}{call: in }{place:, }",
    "stack-over": "crashed: stack overflow ({signal}){call: in }{place:, }",
    "gc-automatic": "automatic garbage collection",
    "lazy-import": "lazy import of {name}",
    "polling": "polling by {call}",
    "freeing": "freeing objects",
    "stolen": "the hypervisor gave the CPU to other machines",
    "throttled": "the container's CPU quota was used up",
    "own-work": "waiting for loopcanary's own work",
    "frozen": "the process was stopped or frozen",
    "terminal-output": "waiting for the terminal to take output",
    "terminal-input": "waiting for standard input",
    "gil-held": "GIL held by {holder}{place: }{also:, }",
    "lock-held": "waiting for {lock} held by {holder}{place: }{also:, }",
    "deadlock": "deadlock of {threads:and}{place: }",
    "circular-wait": "circular wait of {threads:and} until a timeout{place: }",
    "thread-imports": "waiting for {holder} to import {module}",
    "thread-runs": "waiting for {holder} to end{place: }",
    "callbacks": "{count:n} callbacks in one turn{most:, }",
    "mostly": "mostly {what}",
    "first-of-all": "first of all {what}",
}
