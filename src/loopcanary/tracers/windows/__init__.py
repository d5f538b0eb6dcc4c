"""Windows that take no input or paint nothing, although their loop is idle and healthy: a state that some
line switched on, and none switched off.

`hooks` sees the calls, `qt`, `tk` and `gtk` say what they mean and whether they do harm now, `watch` keeps
what is on and decides what is reported, `tracer` is what is registered.
"""
