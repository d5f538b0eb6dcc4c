"""Windows that take no input or paint nothing, although their loop is idle and healthy: a state that some
line switched on, and none switched off.

`watch` sees the calls, keeps what is on, and decides what is reported; `qt`, `tk` and `gtk` say what the
calls mean and whether they do harm now; `tracer` is what is registered.
"""
