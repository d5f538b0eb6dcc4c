"""Probes: what each kind of loop does, told to the engine. One file a kind."""
