"""Tracers, wired to the engine of this process: figures and issues (`all`), and those in the program."""
