"""Tracers: one file per kind of evidence. Frames, input and idle work of probes become figures and issues
here; `tracing` gives the traces to probes, and what came of them to the drain."""
