"""Probes: what each kind of loop does, reported to the engine. One folder a kind."""
