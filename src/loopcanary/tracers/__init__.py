"""Tracers: one file per kind of evidence. What probes tell of frames, input and idle work becomes figures and
issues here; `tracing` gives the traces to probes, and what came of them to the drain."""
