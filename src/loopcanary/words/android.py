"""What is said of stalls that Android's monitors saw: no more than their figures carry."""

from __future__ import annotations

from collections.abc import Mapping

LOOPER = "looper"
"""The kind of loop of an Android thread, in a stall's `loop`."""

ANDROID: Mapping[str, str] = {
    "java-computed": "The main thread ran for {ran:ns} of {whole:ns}: it was computing.",
    "java-waited": "The main thread ran for only {ran:ns} of {whole:ns}: it was waiting, for a lock, a file, another process or a core.",
    "java-mixed": "The main thread ran for {ran:ns} of {whole:ns}, and waited for the rest.",
    "java-no-cpu": "How long the main thread ran is not known.",
    "java-same": "All {count:n} stacks are the same.",
    "java-one": "One stack is the only evidence.",
    "java-differ": "{count:n} stacks, {different:n} different ones.",
    "java-none": "No stack is known.",
    "java-no-map": "{count:#method} without a name: import the methodMapping of this build together with the log.",
    "java-other-map": "{count:n} of {whole:#method} are not in the methodMapping: it is most likely of another build.",
    "java-load": "The device's cores were {busy:%} busy, by this app {app:%}.",
    "java-io": "The cores waited for the disk in {share:%} of the time.",
    "java-odd": "{count:#CPU row} not counted: from another time, or with impossible figures.",
    "java-least": "Its end was not seen: it may have lasted longer.",
}
