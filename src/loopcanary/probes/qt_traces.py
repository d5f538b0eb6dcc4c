"""What Qt's windows show, and how late their input is: told to the tracers. Called from C once a drawn frame and once
an input event, on the thread that handles it."""

from __future__ import annotations


class QtTraces:
    """Of one binding."""

    def __init__(self, binding, tracers) -> None:
        self._binding = binding

    def heard(self, kind, receiver, begin_ns, end_ns, stamp, painted) -> None:
        """See qt_listen in native/module/qt_trace.h."""

    def close(self) -> None:
        """Nothing is told any more."""
